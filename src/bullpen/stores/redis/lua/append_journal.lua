--[[ append_journal: record steps of a running job, or one for which a signal is there.
  KEYS 1 the queue's settings
  ARGV 1 msgpack {now, base, own, id, epoch, entries = {{place, state, head, value?}, …}, receive?}; with `receive`,
         the name of a signal, there is one entry, and the signal's payload is its value
  Returns "lost" if the job is not in this activation, "none" if there is no such signal,
          else {{head, value or nil}, …} as they stand
  Emits nothing ]]
local asked = cmsgpack.unpack(ARGV[1])
local queue, id, entries = open_queue(asked.base, asked.own), asked.id, asked.entries

if not steps().is_running(queue, id, asked.epoch) then return "lost" end
if asked.receive and not steps().done_at(queue, id, entries[1].place) then
  local packed, payload = steps().find_signal(queue, id, { asked.receive })
  if not packed then return "none" end
  redis.call("LREM", queue.own .. KEY.mailbox .. id, 1, packed)
  entries[1].value = payload
end
local standing = {}
for i, entry in ipairs(entries) do standing[i] = steps().append(queue, id, entry, asked.now) end
return standing

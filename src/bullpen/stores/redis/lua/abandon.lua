--[[ abandon: hand back what a request claimed, to the head of its line.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms}
  Returns how many came back
  Emits waiting, failed ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local memory = recall(memory_key) or {}
local queues = open_queues(memory.queues or {})
local returned = 0

for place = count_claimed(memory), 1, -1 do
  local number, id, epoch = claimed_at(memory, place)
  local queue, token = queues[number], token_prefix(memory.token, number) .. id
  if is_held(queue, id, token, epoch) and leave_active(queue, id) then
    local job = read_job(queue, id)
    if job.group then groups().end_in_group(queue, job.group, id) end
    releasing().release(queue, id, job, nil, nil, asked.now)
    returned = returned + 1
  end
end
close_batch(queues, asked.now)
-- Kept also when nothing is known of the request: it may still be on its way.
memory.claimed = {}
memory.abandoned = true
remember(memory_key, memory, asked.memory_ms)
return returned

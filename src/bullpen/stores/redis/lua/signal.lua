--[[ signal: put a signal into a job's mailbox, and wake the job if it waits for it.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms, limit, base, own, id, name, payload}
  Returns "missing" | "full" | "woken" | "kept" | the state of a finished job
  Emits waiting ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local remembered = recall(memory_key)
if remembered then return remembered.delivery end

local queue, id = open_queue(asked.base, asked.own), asked.id
local mailbox = queue.own .. KEY.mailbox .. id
local state = state_of_job(queue, id)
if not state then return "missing" end
if state == "completed" or state == "failed" then return state end
if redis.call("LLEN", mailbox) >= asked.limit then return "full" end

local function waits_for_it()
  local parked = state == "delayed" and redis.call("HGET", queue.base .. id, FIELD.parked)
  for _, name in ipairs(parked and cjson.decode(parked) or {}) do
    if name == asked.name then return true end
  end
  return false
end

redis.call("RPUSH", mailbox, cmsgpack.pack({ asked.name, asked.payload }))
note_steps(queue, id, asked.now)
local delivery = "kept"
if waits_for_it() then
  redis.call("ZREM", queue.delayed, id)
  make_runnable(queue, id, asked.now)
  announce({ queue })
  delivery = "woken"
end
remember(memory_key, { delivery = delivery }, asked.memory_ms)
return delivery

--[[ signal: put a signal into a job's mailbox, and wake the job if it waits for it.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms, limit, base, own, id, name, payload}
  Returns "missing" | "full" | "woken" | "kept" | the state of a finished job
  Emits waiting ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local remembered = recall(memory_key)
if remembered then return remembered.delivery end

local queue, id = open_queue(asked.base, asked.own), asked.id
local state = state_of_job(queue, id)
if not state then return "missing" end
if state == "completed" or state == "failed" then return state end
if redis.call("LLEN", queue.own .. KEY.mailbox .. id) >= asked.limit then return "full" end

local delivery = signals().deliver(queue, id, asked.name, asked.payload, asked.now)
announce({ queue })
remember(memory_key, { delivery = delivery }, asked.memory_ms)
return delivery

--[[ abandon: hand back what a request claimed, to the head of its line.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms}
  Returns how many came back
  Emits waiting, failed ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local memory = recall(memory_key) or {}
local queues = open_queues(memory.queues or {})
local claimed = memory.claimed or {}
local returned = 0

for place = #claimed, 1, -1 do
  local job = claimed[place]
  local queue = queues[job.queue]
  local token = lease_token(memory.token, place)
  if is_held(queue, job.id, token, job.epoch) and leave_active(queue, job.id) then
    release(queue, job.id, read_job(queue, job.id), nil, nil, asked.now)
    returned = returned + 1
  end
end
close_batch(queues, asked.now)
-- Kept also when nothing is known of the request: it may still be on its way.
memory.claimed = {}
memory.abandoned = true
remember(memory_key, memory, asked.memory_ms)
return returned

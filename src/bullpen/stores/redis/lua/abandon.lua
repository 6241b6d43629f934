--[[ abandon: hand back what a request claimed, to the head of its line.
  KEYS 1 the request's memory
  ARGV 1 msgpack {memory_ms}
  Returns how many came back
  Emits waiting ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local memory = recall(memory_key) or {}
local queues_by_base, queues, returned = {}, {}, 0

local function queue_of(base)
  if not queues_by_base[base] then
    queues_by_base[base] = open_queue(base)
    queues[#queues + 1] = queues_by_base[base]
  end
  return queues_by_base[base]
end

-- It never started: a job that was claimed for the first time may still expire.
local function hand_back(queue, id, epoch)
  local job_key = queue.base .. id
  local found = redis.call("HMGET", job_key, FIELD.priority, FIELD.tenant)
  if epoch == 1 then redis.call("HDEL", job_key, FIELD.started) end
  put_in_line(queue, id, tonumber(found[1] or nil) or 0, "head")
  emit(queue, found[2] or nil, "waiting", "jobId", id, "prev", "active")
  returned = returned + 1
end

local claimed = memory.claimed or {}
for place = #claimed, 1, -1 do
  local job = claimed[place]
  local queue, token = queue_of(job.base), lease_token(memory.token, place)
  if is_held(queue, job.id, token, job.epoch) and leave_active(queue, job.id) then
    hand_back(queue, job.id, job.epoch)
  end
end
clear_suspicion(queues)
announce(queues)
-- Kept also when nothing is known of the request: it may still be on its way.
memory.claimed = {}
memory.abandoned = true
remember(memory_key, memory, asked.memory_ms)
return returned

--[[ cancel: end a job that has not started, or ask the worker of a running one to stop it.
  KEYS 1 the queue's settings
  ARGV 1 msgpack {now, base, own, id, reason, worker}; `worker` is what the keys of workers begin with
  Returns "missing" | "cancelled" | "cancelling" | the state of a finished job
  Emits failed, cancelling ]]
local NOTICE_MEMORY_MS = 86400000
local asked = cmsgpack.unpack(ARGV[1])
local queue, id = open_queue(asked.base, asked.own), asked.id

-- The field outlives everything; the notice only makes it quick.
local function ask_to_stop(job)
  local job_key = queue.base .. id
  redis.call("HSET", job_key, FIELD.cancelling, asked.reason)
  emit(queue, job.tenant, "cancelling", "jobId", id)
  local worker = redis.call("HGET", job_key, FIELD.worker)
  if not worker then return end
  local stops, bell = asked.worker .. worker .. KEY.worker_stops, asked.worker .. worker .. KEY.worker_bell
  redis.call("HSET", stops, job_key, queue.base)
  redis.call("LPUSH", bell, 1)
  redis.call("LTRIM", bell, 0, 0)
  redis.call("PEXPIRE", stops, NOTICE_MEMORY_MS)
  redis.call("PEXPIRE", bell, NOTICE_MEMORY_MS)
end

local state = state_of_job(queue, id)
if not state then return "missing" end
if state == "completed" or state == "failed" then return state end
local job = read_job(queue, id)
if state == "active" then
  ask_to_stop(job)
  return "cancelling"
end
leave_place(queue, id, state)
failing().fail(queue, id, job, state, failing().cancellation(asked.reason), job.attempts_made, asked.now)
close_batch({ queue }, asked.now)
return "cancelled"

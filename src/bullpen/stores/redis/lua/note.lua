--[[ note: set one field of a job's record, whatever its state.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 "data" | "progress"  5 its JSON
  Returns "missing" | "done"
  Emits progress ]]
local queue, id, what, json = open_queue(ARGV[1], ARGV[2]), ARGV[3], ARGV[4], ARGV[5]

local job_key = queue.base .. id
if redis.call("EXISTS", job_key) == 0 then return "missing" end
if what == "data" then
  redis.call("HSET", job_key, FIELD.data, json)
else
  redis.call("HSET", job_key, FIELD.progress, json)
  emit(queue, redis.call("HGET", job_key, FIELD.tenant) or nil, "progress", "jobId", id, "data", json)
end
return "done"

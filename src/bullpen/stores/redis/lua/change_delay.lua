--[[ change_delay: make a delayed job due at another time.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 now  5 the delay in ms
  Returns "missing" | "done" | the state of a job that is not delayed
  Emits delayed ]]
local queue, id = open_queue(ARGV[1], ARGV[2]), ARGV[3]
local now, delay = tonumber(ARGV[4]), tonumber(ARGV[5])

local state = state_of_job(queue, id)
if state ~= "delayed" then return state or "missing" end
redis.call("ZREM", queue.delayed, id)
put_until(queue, id, now + delay)
redis.call("HSET", queue.base .. id, FIELD.delay, delay)
local tenant = redis.call("HGET", queue.base .. id, FIELD.tenant) or nil
emit(queue, tenant, "delayed", "jobId", id, "delay", now + delay)
announce({ queue })
return "done"

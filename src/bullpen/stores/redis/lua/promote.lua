--[[ promote: make a delayed job runnable now.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 now
  Returns "missing" | "done" | the state of a job that is not delayed
  Emits waiting ]]
local queue, id, now = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])

local state = state_of_job(queue, id)
if state ~= "delayed" then return state or "missing" end
redis.call("ZREM", queue.delayed, id)
make_runnable(queue, id, now)
announce({ queue })
return "done"

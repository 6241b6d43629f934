--[[ change_priority: give an unfinished job another priority, at the end of that line.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 the priority
  Returns "missing" | "done" | the state of a finished job
  Emits nothing ]]
local queue, id, priority = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])

local state = state_of_job(queue, id)
if not state then return "missing" end
if state == "completed" or state == "failed" then return state end
redis.call("HSET", queue.base .. id, FIELD.priority, priority)
if state == "waiting" or state == "prioritized" then
  leave_place(queue, id, state)
  put_in_line(queue, id, priority, "end", redis.call("HGET", queue.base .. id, FIELD.group) or nil)
end
announce({ queue })
return "done"

--[[ remove: forget a job that is not active, and its id.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 now
  Returns "missing" | "done" | "active" | "scheduled" for the next tick of a schedule
  Emits removed and, for a job that was kept for later, what add emits ]]
local queue, id, now = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])

local state = state_of_job(queue, id)
if not state then return "missing" end
if state == "active" then return state end
if state ~= "completed" and state ~= "failed" and is_pending_tick(queue, id) then return "scheduled" end
leave_place(queue, id, state)
remove_job(queue, id, state, false, now)
announce({ queue })
return "done"

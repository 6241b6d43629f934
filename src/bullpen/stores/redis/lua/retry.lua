--[[ retry: put a finished job back into its line.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 now
  Returns "missing" | "done" | the state of an unfinished job
  Emits waiting ]]
local queue, id, now = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])

local state = state_of_job(queue, id)
if not state then return "missing" end
if state ~= "completed" and state ~= "failed" then return state end
leave_place(queue, id, state)
revive(queue, id, state, now)
announce({ queue })
return "done"

--[[ forget_journal: drop the journal and the mailbox of a job that is not active.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id
  Returns "missing" | "done" | "active"
  Emits nothing ]]
local queue, id = open_queue(ARGV[1], ARGV[2]), ARGV[3]

local state = state_of_job(queue, id)
if not state then return "missing" end
if state == "active" then return state end
forgetting().delete_steps(queue, id)
return "done"

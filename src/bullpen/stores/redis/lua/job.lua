--[[ job: one job's record and the state it is in.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id
  Returns {} if there is no such job, else {state, run time ms or "", record fields}
  Emits nothing ]]
local queue, id = open_queue(ARGV[1], ARGV[2]), ARGV[3]

local fields = redis.call("HGETALL", queue.base .. id)
local state, run_at = state_of(queue, id)
if #fields == 0 or not state then return {} end
return { state, run_at or "", fields }

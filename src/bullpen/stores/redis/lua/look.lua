--[[ look: some jobs' records and the states they are in.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3… the jobs' ids
  Returns for each {} if there is no such job, else {state, run time ms or "", record fields}
  Emits nothing ]]
local queue, first = open_queue(ARGV[1], ARGV[2]), 3

local found = {}
for n = first, #ARGV do
  local id, entry = ARGV[n], {}
  local fields = redis.call("HGETALL", queue.base .. id)
  if #fields > 0 then
    -- The line itself is not searched, since that takes the longer the more wait there.
    local state, run_at = state_out_of_line(queue, id)
    entry = { state or "waiting", run_at or "", fields }
  end
  found[#found + 1] = entry
end
return found

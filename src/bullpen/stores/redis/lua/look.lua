--[[ look: some jobs' records and the states they are in.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3… the jobs' ids
  Returns for each {} if there is no such job, else {state, run time ms or "", record fields}
  Emits nothing ]]
local queue, ids, found = open_queue(ARGV[1], ARGV[2]), {}, {}
for n = 3, #ARGV do ids[n - 2] = ARGV[n] end

for n, id in ipairs(ids) do
  local entry = {}
  local fields = redis.call("HGETALL", queue.base .. id)
  if #fields > 0 then
    -- The line itself is not searched, since that takes the longer the more wait there.
    local state, run_at = state_out_of_line(queue, id)
    entry = { state or "waiting", run_at or "", fields }
  end
  found[n] = entry
end
return found

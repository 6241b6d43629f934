--[[ retry_all: put finished jobs back into their lines, oldest end first.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 "completed" | "failed"  4 how many at most  5 now
       6 only those that finished at this time or before
  Returns "missing" if there never was such a queue, else how many left the state
  Emits waiting ]]
local queue, state, limit, now = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local finished_by = ARGV[6]

if not exists(queue) then return "missing" end
local ids = redis.call("ZRANGEBYSCORE", queue[state], "-inf", finished_by, "LIMIT", 0, limit)
for _, id in ipairs(ids) do
  redis.call("ZREM", queue[state], id)
  -- An entry whose record is lost is no job.
  if redis.call("EXISTS", queue.base .. id) == 1 then revive(queue, id, state, now) end
end
announce({ queue })
return #ids

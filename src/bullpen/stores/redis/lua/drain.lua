--[[ drain: remove a portion of the runnable jobs, and of the delayed ones if asked.
  The next tick of a schedule stays: without it the schedule would stop.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4 "delayed" | ""  5 how many at most
  Returns "missing" if there never was such a queue, else how many went
  Emits removed and, for jobs that were kept for later, what add emits ]]
local queue, now = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3])
local with_delayed, limit = ARGV[4] == "delayed", tonumber(ARGV[5])

if not exists(queue) then return "missing" end
local ticks = redis.call("ZCARD", queue.base .. KEY.schedulers)
local gone = 0

local function drain(place, state)
  local first = limit - gone + ticks
  local ids = state == "waiting" and redis.call("LRANGE", place, -first, -1) or redis.call("ZRANGE", place, 0, first - 1)
  for _, id in ipairs(ids) do
    if gone == limit then return end
    if not is_pending_tick(queue, id) then
      if state == "waiting" then redis.call("LREM", place, -1, id) else redis.call("ZREM", place, id) end
      remove_job(queue, id, state, true, now)
      gone = gone + 1
    end
  end
end

drain(queue.paused, "waiting")
drain(queue.wait, "waiting")
drain(queue.prioritized, "prioritized")
for _, id in ipairs(redis.call("ZRANGE", grouped_key(queue), 0, limit - gone - 1)) do
  if gone == limit then break end
  local state = state_in_group(queue, id)
  leave_group_line(queue, id)
  remove_job(queue, id, state, true, now)
  gone = gone + 1
end
if with_delayed then drain(queue.delayed, "delayed") end
announce({ queue })
return gone

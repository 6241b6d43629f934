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
local leaving = {}

local function gather(place, state)
  local first = limit - #leaving + ticks
  local ids = state == "waiting" and redis.call("LRANGE", place, -first, -1) or redis.call("ZRANGE", place, 0, first - 1)
  for _, id in ipairs(ids) do
    if #leaving == limit then return end
    if not forgetting().is_pending_tick(queue, id) then
      leaving[#leaving + 1] = { place = place, id = id, state = state }
    end
  end
end

-- All are gathered before the first goes: a parent that is released by that comes after the drain.
gather(queue.paused, "waiting")
gather(queue.wait, "waiting")
gather(queue.prioritized, "prioritized")
gather(groups().grouped_key(queue), "grouped")
if with_delayed then gather(queue.delayed, "delayed") end
for _, job in ipairs(leaving) do
  local state = job.state
  if state == "grouped" then
    state = groups().state_in_group(queue, job.id)
    groups().leave_group_line(queue, job.id)
  elseif state == "waiting" then
    redis.call("LREM", job.place, -1, job.id)
  else
    redis.call("ZREM", job.place, job.id)
  end
  remove_job(queue, job.id, state, true, now)
end
announce({ queue })
return #leaving

--[[ Schedules as BullMQ keeps them: when each ticks next in one sorted set, the rest in a hash of its own.
  A tick is a job, and one of a schedule is pending at a time. ]]

-- The time of the newest tick, or nil if there is no such schedule.
local function newest_tick(queue, schedule)
  local score = redis.call("ZSCORE", queue.base .. KEY.schedulers, schedule)
  return score and math.floor(tonumber(score)) or nil
end

local function tick_id(schedule, ms)
  return KEY.tick .. schedule .. ":" .. string.format("%.0f", ms)
end

-- To be claimed for the first time: one that was handed back is on its way already.
local function is_pending(queue, schedule, ms)
  local found = redis.call("HMGET", queue.base .. tick_id(schedule, ms), FIELD.name, FIELD.started, FIELD.finished)
  return found[1] and not found[2] and not found[3]
end

local function is_resting(queue, schedule)
  local found = redis.call("HMGET", queue.base .. KEY.tick .. schedule, FIELD.schedule_paused, FIELD.schedule_ended)
  return found[1] or found[2]
end

-- How a schedule stands, as an answer; nil for an entry without a hash, which is what is left of something else.
local function tell_schedule(queue, schedule, newest)
  local fields = redis.call("HGETALL", queue.base .. KEY.tick .. schedule)
  if #fields == 0 then return nil end
  local options = redis.call("HGET", queue.base .. tick_id(schedule, newest), FIELD.options) or ""
  return { schedule, newest, fields, options, is_pending(queue, schedule, newest) and "pending" or "" }
end

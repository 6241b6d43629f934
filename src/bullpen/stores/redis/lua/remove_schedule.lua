--[[ remove_schedule: forget a schedule and its pending tick.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the schedule  4 now
  Returns "missing" | "done"
  Emits removed ]]
local queue, schedule, now = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])

local newest = newest_tick(queue, schedule)
if not newest then return "missing" end
if is_pending(queue, schedule, newest) then
  local tick = tick_id(schedule, newest)
  local state = state_of(queue, tick)
  if state then leave_place(queue, tick, state) end
  remove_job(queue, tick, state or "delayed", false, now)
end
redis.call("ZREM", queue.base .. KEY.schedulers, schedule)
redis.call("DEL", queue.base .. KEY.tick .. schedule)
return "done"

--[[ schedules: how the schedules of a queue stand, or one of them.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the schedule, or "" for all
  Returns {{id, time of its newest tick, fields, options of that tick, "pending" | ""}, …}
  Emits nothing ]]
local queue, one = open_queue(ARGV[1], ARGV[2]), ARGV[3]

local found = {}
for _, schedule in ipairs(one ~= "" and { one } or redis.call("ZRANGE", queue.base .. KEY.schedulers, 0, -1)) do
  local newest = newest_tick(queue, schedule)
  found[#found + 1] = newest and tell_schedule(queue, schedule, newest)
end
return found

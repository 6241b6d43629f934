--[[ idle_schedules: the schedules of these queues whose newest tick is due and no longer pending, and that do not rest.
  KEYS 1 the settings of the first queue
  ARGV 1 msgpack {now, queues = {{base, own}, …}}
  Returns {{base, {id, time of its newest tick, fields, options of that tick, ""}}, …}
  Emits nothing ]]
local AT_ONCE = 500 -- looked at of a queue by one call, in turn, where more are due
local asked = cmsgpack.unpack(ARGV[1])

local function due(queue)
  local schedulers = queue.base .. KEY.schedulers
  local turns = math.max(math.ceil(redis.call("ZCOUNT", schedulers, "-inf", asked.now) / AT_ONCE), 1)
  local first = math.floor(asked.now / 1000) % turns * AT_ONCE
  return redis.call("ZRANGEBYSCORE", schedulers, "-inf", asked.now, "LIMIT", first, AT_ONCE)
end

local found = {}
for _, queue in ipairs(open_queues(asked.queues)) do
  for _, schedule in ipairs(due(queue)) do
    local newest = newest_tick(queue, schedule)
    if not is_resting(queue, schedule) and not is_pending(queue, schedule, newest) then
      local told = tell_schedule(queue, schedule, newest)
      if told then found[#found + 1] = { queue.base, told } end
    end
  end
end
return found

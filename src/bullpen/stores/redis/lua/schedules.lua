--[[ schedules: how the schedules of a queue stand: one of them, all, or those with nothing pending that should have.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 "one" | "all" | "idle"  4 its id | "" | now
  Returns {{id, time of its newest tick, fields, options of that tick, "pending" | ""}, …}
  Emits nothing ]]
local AT_ONCE = 500 -- looked at by one call, in turn, where more are due
local queue, which, what = open_queue(ARGV[1], ARGV[2]), ARGV[3], ARGV[4]
local schedulers = queue.base .. KEY.schedulers

local function candidates()
  if which == "one" then return { what } end
  if which == "all" then return redis.call("ZRANGE", schedulers, 0, -1) end
  local due = redis.call("ZCOUNT", schedulers, "-inf", what)
  local turns = math.max(math.ceil(due / AT_ONCE), 1)
  local first = math.floor(tonumber(what) / 1000) % turns * AT_ONCE
  return redis.call("ZRANGEBYSCORE", schedulers, "-inf", what, "LIMIT", first, AT_ONCE)
end

local found = {}
for _, schedule in ipairs(candidates()) do
  local newest = newest_tick(queue, schedule)
  local is_asked_for = newest and not (which == "idle"
    and (is_resting(queue, schedule) or is_pending(queue, schedule, newest)))
  local fields = is_asked_for and redis.call("HGETALL", queue.base .. KEY.tick .. schedule) or {}
  -- An entry without a hash is what is left of something else.
  if #fields > 0 then
    found[#found + 1] = {
      schedule,
      newest,
      fields,
      redis.call("HGET", queue.base .. tick_id(schedule, newest), FIELD.options) or "",
      is_pending(queue, schedule, newest) and "pending" or "",
    }
  end
end
return found

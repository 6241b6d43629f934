--[[ put_schedule: write a schedule whole, in place of the one that was seen, with its next tick.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
       3 msgpack {now, id, seen?, fields = {name, value, …}, rest_at?, next?, tick? as add's job}
  Returns "done" | "changed" | "taken"
  Emits removed and what add emits ]]
local queue, asked = open_queue(ARGV[1], ARGV[2]), cmsgpack.unpack(ARGV[3])
local schedule_key = queue.base .. KEY.tick .. asked.id

local seen = newest_tick(queue, asked.id)
if seen ~= asked.seen then return "changed" end
local old = seen and is_pending(queue, asked.id, seen) and tick_id(asked.id, seen)
if asked.tick and asked.tick.id ~= old and redis.call("EXISTS", queue.base .. asked.tick.id) == 1 then
  return "taken"
end
if old then
  local state = state_of(queue, old)
  if state then leave_place(queue, old, state) end
  remove_job(queue, old, state or "delayed", false, asked.now)
end

local kept = redis.call("HMGET", schedule_key, FIELD.schedule_ticks, FIELD.schedule_skipped, FIELD.schedule_running)
local ticks = tonumber(kept[1] or nil) or 0
if asked.tick then ticks = ticks + 1 end
if old then ticks = ticks - 1 end
redis.call("DEL", schedule_key)
redis.call("HSET", schedule_key, FIELD.schedule_ticks, ticks, unpack(asked.fields))
if kept[2] then redis.call("HSET", schedule_key, FIELD.schedule_skipped, kept[2]) end
if kept[3] then redis.call("HSET", schedule_key, FIELD.schedule_running, kept[3]) end
redis.call("ZADD", queue.base .. KEY.schedulers, asked.next or asked.rest_at, asked.id)
max_events(queue) -- the queue exists from now on
if asked.tick then adding().insert(queue, asked.tick, asked.now) end
announce({ queue })
return "done"

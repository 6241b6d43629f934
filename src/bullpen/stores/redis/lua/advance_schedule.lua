--[[ advance_schedule: add the tick after one that is no longer pending, or let the schedule end.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 msgpack {now, id, from, next?, count?, tick? as add's job}
  Returns "done" | "refused" if that is not its newest tick, is pending, or the schedule rests
  Emits what add emits ]]
local queue, asked = open_queue(ARGV[1], ARGV[2]), cmsgpack.unpack(ARGV[3])
local schedule_key = queue.base .. KEY.tick .. asked.id

if newest_tick(queue, asked.id) ~= asked.from then return "refused" end
if is_resting(queue, asked.id) or is_pending(queue, asked.id, asked.from) then return "refused" end
if not asked.tick then
  redis.call("HSET", schedule_key, FIELD.schedule_ended, 1)
  return "done"
end
if redis.call("EXISTS", queue.base .. asked.tick.id) == 1 then return "refused" end
redis.call("ZADD", queue.base .. KEY.schedulers, asked.next, asked.id)
redis.call("HINCRBY", schedule_key, FIELD.schedule_ticks, 1)
redis.call("HSET", schedule_key, FIELD.schedule_count, asked.count)
adding().insert(queue, asked.tick, asked.now)
announce({ queue })
return "done"

--[[ set_limits: limit a queue as a whole, in BullMQ's own settings. A new window of the rate begins.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4 concurrency  5 rate max  6 rate ms; "" is no limit
  Returns "done"
  Emits nothing ]]
local queue, now = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3])
local said = { [FIELD.concurrency] = ARGV[4], [FIELD.rate_max] = ARGV[5], [FIELD.rate_ms] = ARGV[6] }

for field, value in pairs(said) do
  if value == "" then
    redis.call("HDEL", queue.meta, field)
  else
    redis.call("HSET", queue.meta, field, value)
  end
end
max_events(queue)
-- While a handler has closed the queue, BullMQ's workers see that by the limiter.
if (queue.closed_until or 0) <= now then
  redis.call("DEL", queue.limiter)
  redis.call("HDEL", queue.meta, FIELD.queue_closed)
end
queue.has_work = true
announce({ queue })
return "done"

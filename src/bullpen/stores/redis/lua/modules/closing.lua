-- Closing a queue for a while, when someone else has enough.

local USED_UP = 9007199254740991 -- as BullMQ writes it

-- BullMQ's workers see a limiter that is used up, where they have a limit; ours see the time, in any queue.
local function close_queue(queue, delay, now)
  if now + delay <= (settings(queue).closed_until or 0) then return end
  queue.closed_until = now + delay
  redis.call("HSET", queue.meta, FIELD.queue_closed, text(queue.closed_until))
  if redis.call("PTTL", queue.limiter) < delay then
    redis.call("SET", queue.limiter, text(USED_UP), "PX", text(delay))
  end
end

return {
  close_queue = close_queue,
}

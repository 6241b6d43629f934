-- A queue's rate and closings: what holds all of its workers back.

-- How many more may start in this window of the rate limit (nil: any), and when the window ends.
local function rate_left(queue, now)
  if not settings(queue).rate_max then return nil, 0 end
  local started = tonumber(redis.call("GET", queue.limiter) or nil) or 0
  local window = redis.call("PTTL", queue.limiter)
  if window <= 0 then return queue.rate_max, 0 end
  return math.max(queue.rate_max - started, 0), now + window
end

-- Until when the queue gives out nothing, since a handler closed it or its rate is used up; nil while it is open.
-- Also returns how many more may start (nil: any).
local function held_until(queue, now)
  local left, window_ends = rate_left(queue, now)
  local time = math.max(queue.closed_until or 0, left == 0 and window_ends or 0)
  return time > now and time or nil, left
end

--[[ Claiming: due jobs join the line, then the first in line become active. ]]
local WORKER_MEMORY_MS = 2592000000 -- of one that went without a word; 30 days

-- Returns the time at which the next is due, or nil.
local function promote_due(queue, now)
  local first = next_due(queue)
  if not first or first > now then return first end
  local latest = (now + 1) * DELAY_STEP - 1
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", latest, "LIMIT", "0", PROMOTE_LIMIT)
  redis.call("ZREM", queue.delayed, unpack(due))
  for _, id in ipairs(due) do make_runnable(queue, id, now) end
  return next_due(queue)
end

local function count_starts(queue, starts)
  if starts == 0 or not queue.rate_max then return end
  if redis.call("INCRBY", queue.limiter, starts) == starts and queue.rate_ms then
    redis.call("PEXPIRE", queue.limiter, queue.rate_ms)
  end
end

-- Move the first of one line, up to that many, to `active`; none if both lines are empty.
local function pop(queue, count)
  local ids = redis.call("RPOP", queue.wait, text(count)) or {}
  if #ids == 0 then
    local first = redis.call("ZPOPMIN", queue.prioritized, text(count))
    for i = 1, #first, 2 do ids[#ids + 1] = first[i] end
  end
  if #ids > 0 then
    redis.call("LPUSH", queue.active, unpack(ids))
  else
    redis.call("DEL", queue.priority_counter)
  end
  return ids
end

local function room(queue, wanted)
  if not queue.concurrency then return wanted end
  return math.min(wanted, queue.concurrency - redis.call("LLEN", queue.active))
end

local function take_from_lines(queue, claimed, free, lease, now)
  local skipped = 0
  while #claimed < free and skipped < SKIP_LIMIT do
    local ids = pop(queue, math.min(free - #claimed, CHUNK))
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
      local job = activate(queue, id, lease, now)
      if job then claimed[#claimed + 1] = job else skipped = skipped + 1 end
    end
  end
end

local function has_groups(queue)
  return queue.touched ~= nil or redis.call("EXISTS", queue.own .. KEY.ring, queue.own .. KEY.ring_closed) > 0
end

-- Returns the claimed jobs, of `only` this group if one is named, and the time at which to look again, if there is one.
local function take(queue, wanted, lease, now, only)
  local claimed, due = {}, promote_due(queue, now)
  push_joined(queue)
  if is_blocked(queue) or wanted <= 0 then return claimed, due end
  local held, left = held_until(queue, now)
  if held then return claimed, math.min(due or held, held) end
  local free = room(queue, math.min(wanted, left or wanted))
  if not only then take_from_lines(queue, claimed, free, lease, now) end
  if #claimed < free and has_groups(queue) then
    local wakes = turns().take_turns(queue, claimed, free, lease, now, only)
    if wakes then due = math.min(due or wakes, wakes) end
  end
  count_starts(queue, #claimed)
  -- Known for as long as it claims, so that all of a worker's jobs are found when it crashed.
  if #claimed > 0 and redis.call("SADD", lease.queues, queue.base) == 1 then
    redis.call("PEXPIRE", lease.queues, WORKER_MEMORY_MS)
  end
  -- Whoever sleeps beside us must learn that there may be more.
  if #claimed > 0 then redis.call("ZADD", queue.marker, "0", "0") end
  return claimed, due
end

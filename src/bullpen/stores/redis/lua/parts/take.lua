--[[ Claiming: due jobs join the line, then the first in line become active. ]]
local PROMOTE_LIMIT = 1000
local WORKER_MEMORY_MS = 2592000000 -- of one that went without a word; 30 days
local SKIP_LIMIT = 1000 -- entries of a line that are no runnable jobs, passed over by one call at most

local function promote_due(queue, now)
  local latest = (now + 1) * DELAY_STEP - 1
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", latest, "LIMIT", 0, PROMOTE_LIMIT)
  if #due == 0 then return end
  redis.call("ZREM", queue.delayed, unpack(due))
  for _, id in ipairs(due) do make_runnable(queue, id, now) end
end

-- How many more may start in this window of the rate limit (nil: any), and how long it lasts.
local function rate_left(queue)
  if not settings(queue).rate_max then return nil, 0 end
  local started = tonumber(redis.call("GET", queue.limiter) or nil) or 0
  local window = redis.call("PTTL", queue.limiter)
  if window <= 0 then return queue.rate_max, 0 end
  return math.max(queue.rate_max - started, 0), window
end

local function count_starts(queue, starts)
  if starts == 0 or not queue.rate_max then return end
  if redis.call("INCRBY", queue.limiter, starts) == starts and queue.rate_ms then
    redis.call("PEXPIRE", queue.limiter, queue.rate_ms)
  end
end

local function pop(queue)
  local id = redis.call("RPOPLPUSH", queue.wait, queue.active)
  if id then return id end
  local first = redis.call("ZPOPMIN", queue.prioritized)
  if not first[1] then
    redis.call("DEL", queue.priority_counter)
    return nil
  end
  redis.call("LPUSH", queue.active, first[1])
  return first[1]
end

-- Whether an entry of the line is a job to run. If not, it is gone from `active`, and ended if it is a job.
local function may_run(queue, id, known, now)
  local start_by = not known[FIELD.started] and tonumber(known[FIELD.start_by])
  local is_late = start_by and start_by < now
  local is_job = next(known) ~= nil
  if is_job and not is_late and not known[FIELD.cancelling] then return true end
  redis.call("LREM", queue.active, 1, id)
  if known[FIELD.cancelling] then
    end_as_asked(queue, id, read_job(queue, id), now)
  elseif is_job then
    expire(queue, id, (tonumber(known[FIELD.priority]) or 0) > 0 and "prioritized" or "waiting", now)
  end
  return false
end

-- The job's record as a list of fields, or nil if the entry was no runnable job and is gone.
local function activate(queue, id, lease, now)
  local job_key = queue.base .. id
  local fields = redis.call("HGETALL", job_key)
  local known = {}
  for i = 1, #fields, 2 do known[fields[i]] = fields[i + 1] end
  if not may_run(queue, id, known, now) then return nil end
  local epoch = (tonumber(known[FIELD.epoch]) or 0) + 1
  lease.given = lease.given + 1
  local changes = { FIELD.started, now, FIELD.epoch, epoch, FIELD.worker, lease.worker }
  redis.call("SET", job_key .. KEY.lock, lease_token(lease.token, lease.given), "PX", lease.ms)
  redis.call("HSET", job_key, unpack(changes))
  if known[FIELD.parked] then redis.call("HDEL", job_key, FIELD.parked) end
  emit(queue, known[FIELD.tenant], "active", "jobId", id, "prev", "waiting")
  for _, change in ipairs(changes) do fields[#fields + 1] = change end
  return { id = id, epoch = epoch, fields = fields, is_doomed = known[FIELD.doomed] ~= nil }
end

local function room(queue, wanted)
  local left, window = rate_left(queue)
  local free = math.min(wanted, left or wanted)
  if queue.concurrency then
    free = math.min(free, queue.concurrency - redis.call("LLEN", queue.active))
  end
  return free, left == 0 and window or nil
end

-- Returns the claimed jobs, and the time at which to look again, if there is one.
local function take(queue, wanted, lease, now)
  promote_due(queue, now)
  local claimed, starts, due = {}, 0, next_due(queue)
  if is_blocked(queue) then return claimed, due end
  local free, limited_for = room(queue, wanted)
  if limited_for then return claimed, math.min(due or math.huge, now + limited_for) end
  local skipped = 0
  while #claimed < free and skipped < SKIP_LIMIT do
    local id = pop(queue)
    if not id then break end
    local job = activate(queue, id, lease, now)
    if job then
      claimed[#claimed + 1] = job
      if not job.is_doomed then starts = starts + 1 end
    else
      skipped = skipped + 1
    end
  end
  count_starts(queue, starts)
  -- Known for as long as it claims, so that all of a worker's jobs are found when it crashed.
  if #claimed > 0 and redis.call("SADD", lease.queues, queue.base) == 1 then
    redis.call("PEXPIRE", lease.queues, WORKER_MEMORY_MS)
  end
  -- Whoever sleeps beside us must learn that there may be more.
  if #claimed > 0 then redis.call("ZADD", queue.marker, 0, "0") end
  return claimed, due
end

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

-- Move the first of one line, up to that many, to `active`; none if both lines are empty.
local function pop(queue, count)
  local ids = redis.call("RPOP", queue.wait, count) or {}
  if #ids == 0 then
    local first = redis.call("ZPOPMIN", queue.prioritized, count)
    for i = 1, #first, 2 do ids[#ids + 1] = first[i] end
  end
  if #ids > 0 then
    redis.call("LPUSH", queue.active, unpack(ids))
  else
    redis.call("DEL", queue.priority_counter)
  end
  return ids
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

local function by_name(fields)
  local known = {}
  for i = 1, #fields, 2 do known[fields[i]] = fields[i + 1] end
  return known
end

-- Returns {base, id, token, epoch, record fields as they were} and whether the job is to start only in order to fail;
-- nil if the entry was no runnable job and is gone.
local function activate(queue, id, lease, now)
  local job_key = queue.base .. id
  local fields = redis.call("HGETALL", job_key)
  local count = #fields
  local epoch, tenant, is_doomed, needs_check = 1, nil, false, count == 0
  for i = 1, count, 2 do
    local name = fields[i]
    if name == FIELD.epoch then
      epoch = (tonumber(fields[i + 1]) or 0) + 1
    elseif name == FIELD.tenant then
      tenant = fields[i + 1]
    elseif name == FIELD.doomed then
      is_doomed = true
    elseif name == FIELD.start_by or name == FIELD.cancelling then
      needs_check = true
    end
  end
  if needs_check and not may_run(queue, id, by_name(fields), now) then return nil end
  lease.given = lease.given + 1
  local token = lease_token(lease.token, lease.given)
  redis.call("SET", job_key .. KEY.lock, token, "PX", text(lease.ms))
  redis.call("HSET", job_key, FIELD.started, text(now), FIELD.epoch, text(epoch), FIELD.worker, lease.worker)
  emit(queue, tenant, "active", "jobId", id, "prev", "waiting")
  return { queue.base, id, token, epoch, fields }, is_doomed
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
  push_joined(queue)
  local claimed, starts, due = {}, 0, next_due(queue)
  if is_blocked(queue) then return claimed, due end
  local free, limited_for = room(queue, wanted)
  if limited_for then return claimed, math.min(due or math.huge, now + limited_for) end
  local skipped = 0
  while #claimed < free and skipped < SKIP_LIMIT do
    local ids = pop(queue, math.min(free - #claimed, CHUNK))
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
      local job, is_doomed = activate(queue, id, lease, now)
      if job then
        claimed[#claimed + 1] = job
        if not is_doomed then starts = starts + 1 end
      else
        skipped = skipped + 1
      end
    end
  end
  count_starts(queue, starts)
  -- Known for as long as it claims, so that all of a worker's jobs are found when it crashed.
  if #claimed > 0 and redis.call("SADD", lease.queues, queue.base) == 1 then
    redis.call("PEXPIRE", lease.queues, WORKER_MEMORY_MS)
  end
  -- Whoever sleeps beside us must learn that there may be more.
  if #claimed > 0 then redis.call("ZADD", queue.marker, "0", "0") end
  return claimed, due
end

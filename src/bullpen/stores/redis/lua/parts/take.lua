--[[ Claiming: due jobs join the line, then the first in line become active. ]]
local PROMOTE_LIMIT = 1000
local WORKER_MEMORY_MS = 2592000000 -- of one that went without a word; 30 days
local GROUP_MARK = '"' .. OPTION.group .. '"'
local SKIP_LIMIT = 1000 -- entries of a line that are no runnable jobs, passed over by one call at most

local function promote_due(queue, now)
  local latest = (now + 1) * DELAY_STEP - 1
  local due = redis.call("ZRANGEBYSCORE", queue.delayed, "-inf", latest, "LIMIT", 0, PROMOTE_LIMIT)
  if #due == 0 then return end
  redis.call("ZREM", queue.delayed, unpack(due))
  for _, id in ipairs(due) do make_runnable(queue, id, now) end
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

-- BullMQ put a grouped job into a line that is not its own, or made one: it is to wait in its group. One that
-- ran before was taken from a dead worker, so it goes to the head.
local function send_to_group(queue, id, group, known)
  redis.call("LREM", queue.active, 1, id)
  redis.call("HSET", queue.base .. id, FIELD.group, group)
  end_in_group(queue, group, id)
  put_in_line(queue, id, tonumber(known[FIELD.priority]) or 0, known[FIELD.started] and "head" or "end", group)
end

local function group_in_options(options)
  local own = read_options(options)[OPTION.own]
  local group = type(own) == "table" and own[OPTION.group]
  return type(group) == "string" and group ~= "" and group or nil
end

-- `turn` is the name of the group whose turn it is, if the job was taken from one.
-- Returns {base, id, token, epoch, record fields as they were} and whether the job is to start only in order to fail;
-- nil if the entry was no runnable job and is gone.
local function activate(queue, id, lease, now, turn)
  local job_key = queue.base .. id
  local fields = redis.call("HGETALL", job_key)
  local count = #fields
  local epoch, tenant, group, is_doomed, is_parked, needs_check = 1, nil, nil, false, false, count == 0
  local priority, was_tried = "0", false
  for i = 1, count, 2 do
    local name = fields[i]
    if name == FIELD.epoch then
      epoch = (tonumber(fields[i + 1]) or 0) + 1
    elseif name == FIELD.priority then
      priority = fields[i + 1]
    elseif name == FIELD.tenant then
      tenant = fields[i + 1]
    elseif name == FIELD.group then
      group = fields[i + 1]
    elseif name == FIELD.options and string.find(fields[i + 1], GROUP_MARK, 1, true) then
      group = group or group_in_options(fields[i + 1])
    elseif name == FIELD.doomed then
      is_doomed = true
    elseif name == FIELD.parked then
      is_parked = true
    elseif name == FIELD.start_by or name == FIELD.cancelling then
      needs_check = true
    elseif name == FIELD.attempts_made or name == FIELD.legacy_attempts_made or name == FIELD.failed_reason then
      was_tried = true
    end
  end
  if group and not turn then
    send_to_group(queue, id, group, by_name(fields))
    return nil
  end
  if needs_check and not may_run(queue, id, by_name(fields), now) then return nil end
  lease.given = lease.given + 1
  local token = lease_token(lease.token, lease.given)
  redis.call("SET", job_key .. KEY.lock, token, "PX", text(lease.ms))
  redis.call("HSET", job_key, FIELD.started, text(now), FIELD.epoch, text(epoch), FIELD.worker, lease.worker)
  if is_parked then redis.call("HDEL", job_key, FIELD.parked) end
  if was_tried then
    emit(queue, tenant, "active", "jobId", id, "prev", "waiting")
  else
    emit(queue, tenant, "active", "jobId", id, "prev", "waiting", recorded(now, priority))
  end
  return { queue.base, id, token, epoch, fields }, is_doomed
end

local function room(queue, wanted)
  if not queue.concurrency then return wanted end
  return math.min(wanted, queue.concurrency - redis.call("LLEN", queue.active))
end

-- The end of a closing or of a window: the group begins anew.
local function reopen_due(queue, now)
  local due = redis.call("ZRANGEBYSCORE", queue.own .. KEY.ring_closed, "-inf", now, "LIMIT", 0, PROMOTE_LIMIT)
  for _, name in ipairs(due) do
    local group = touch_group(queue, name)
    group.window_until, group.window_starts, group.closed_until = 0, 0, 0
    redis.call("DEL", queue.own .. KEY.group_state .. name)
  end
end

local function count_start_in_group(group, now)
  if not group.rate_max or not group.rate_ms then return end
  if group.window_until <= now then group.window_until, group.window_starts = now + group.rate_ms, 0 end
  group.window_starts = group.window_starts + 1
  remember_state(group, now)
end

local function pop_from_group(queue, group)
  local id = redis.call("ZPOPMIN", group.line)[1]
  if not id then return nil end
  redis.call("ZREM", grouped_key(queue), id)
  group.waiting = group.waiting - 1
  redis.call("LPUSH", queue.active, id)
  return id
end

-- The group whose turn it is gives its first job; `starts` are those that count against the queue's rate.
-- Out of turn the group moves on, and the time of the others stands still.
-- Returns the job, or nil if the entry was no runnable job and is gone.
local function take_turn(queue, name, lease, now, is_out_of_turn)
  local group = touch_group(queue, name)
  local id = pop_from_group(queue, group)
  local job, is_doomed
  if id then job, is_doomed = activate(queue, id, lease, now, name) else group.waiting = 0 end
  if job then
    start_in_group(queue, group, id)
    if not is_out_of_turn then queue.present, queue.has_turned = group.time, true end
    group.time = group.time + 1 / group.weight
    redis.call("ZADD", queue.own .. KEY.ring, group.time, name)
    if not is_doomed then count_start_in_group(group, now) end
  end
  stand(queue, group)
  return job, is_doomed
end

-- The group whose turn it is; `only` at any time, if it may give.
local function next_in_ring(ring, only)
  if only then return redis.call("ZSCORE", ring, only) and only or nil end
  return redis.call("ZRANGE", ring, 0, 0)[1]
end

-- Let the groups take turns until so many are claimed; or `only` one of them. Returns when to look again, if a group
-- wakes.
local function take_turns(queue, claimed, free, lease, now, only)
  local ring, starts, skipped = queue.own .. KEY.ring, 0, 0
  reopen_due(queue, now)
  stand_touched(queue)
  while #claimed < free and skipped < SKIP_LIMIT do
    local name = next_in_ring(ring, only)
    if not name then break end
    local job, is_doomed = take_turn(queue, name, lease, now, only ~= nil)
    claimed[#claimed + 1] = job
    if not job then
      skipped = skipped + 1
      stand_touched(queue) -- the end of a child may have put its parent into another group
    elseif not is_doomed then
      starts = starts + 1
    end
  end
  if queue.has_turned then
    redis.call("SET", queue.own .. KEY.ring_present, string.format("%.17g", queue.present))
    redis.call("ZREMRANGEBYSCORE", queue.own .. KEY.ring_rest, "-inf", queue.present)
  end
  stand_touched(queue)
  return starts, tonumber(redis.call("ZRANGE", queue.own .. KEY.ring_closed, 0, 0, "WITHSCORES")[2] or nil)
end

local function take_from_lines(queue, claimed, free, lease, now)
  local starts, skipped = 0, 0
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
  return starts
end

local function has_groups(queue)
  return queue.touched ~= nil or redis.call("EXISTS", queue.own .. KEY.ring, queue.own .. KEY.ring_closed) > 0
end

-- Returns the claimed jobs, of `only` this group if one is named, and the time at which to look again, if there is one.
local function take(queue, wanted, lease, now, only)
  promote_due(queue, now)
  push_joined(queue)
  local claimed, due = {}, next_due(queue)
  if is_blocked(queue) or wanted <= 0 then return claimed, due end
  local held, left = held_until(queue, now)
  if held then return claimed, math.min(due or held, held) end
  local free = room(queue, math.min(wanted, left or wanted))
  local starts = only and 0 or take_from_lines(queue, claimed, free, lease, now)
  if #claimed < free and has_groups(queue) then
    local more, wakes = take_turns(queue, claimed, free, lease, now, only)
    starts = starts + more
    if wakes then due = math.min(due or wakes, wakes) end
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

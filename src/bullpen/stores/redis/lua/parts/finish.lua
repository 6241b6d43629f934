--[[ The end of a job: its subject is freed, its record stays as long as its retention says. ]]
local DEFAULT_KEEP_COMPLETED = { count = 1000, age_ms = 86400000 } -- as job/spec.py has them
local DEFAULT_KEEP_STACKS = 10
local TRIM_LIMIT = 1000 -- records removed by one call at most; the next one goes on
local METRICS_MINUTES = 10080 -- a week of minutes

local function positive(value)
  local number = tonumber(value) or 0
  return number > 0 and number or nil
end

-- The job that was kept for when this one ends, as it would be asked for.
local function kept_job(queue, dedup_id)
  local next_key = queue.base .. KEY.dedup_next .. dedup_id
  local found = redis.call("HMGET", next_key, FIELD.name, FIELD.data, FIELD.options, FIELD.next_id)
  if not found[4] then return nil end
  redis.call("DEL", next_key)
  local options = read_options(found[3])
  local own = options[OPTION.own] or {}
  return {
    id = found[4],
    name = found[1] or "",
    data = found[2] or "{}",
    options = found[3] or "{}",
    delay = positive(options[OPTION.delay]),
    priority = positive(options[OPTION.priority]),
    lifo = options[OPTION.lifo] == true,
    tenant = own[OPTION.tenant],
    group = own[OPTION.group],
    start_by = own[OPTION.start_by],
    dedup = { id = dedup_id, keep_last = true },
  }
end

local function free_subject(queue, dedup_id, now)
  redis.call("DEL", queue.base .. KEY.dedup .. dedup_id)
  local kept = kept_job(queue, dedup_id)
  if kept then insert(queue, kept, now) end
end

local function owns_subject(queue, id, dedup_id)
  return redis.call("GET", queue.base .. KEY.dedup .. dedup_id) == id
end

-- A subject with a time of its own stays taken until then, though its job ended.
local function end_subject(queue, id, dedup_id, now)
  if not owns_subject(queue, id, dedup_id) then return end
  if redis.call("PTTL", queue.base .. KEY.dedup .. dedup_id) == -1 then free_subject(queue, dedup_id, now) end
end

-- BullMQ writes retention as true, false, a count, or a table of count and age in seconds.
local function read_retention(rule)
  if rule == true then return { count = 0 } end
  if type(rule) == "number" then return { count = rule } end
  if type(rule) ~= "table" then return { count = -1 } end
  local age = tonumber(rule.age)
  return { count = tonumber(rule.count) or -1, age_ms = age and age * 1000 }
end

local retentions = { completed = {}, failed = {} } -- by state and by table of options

-- A job of ours that says nothing has our default, which is not written; what others add is kept.
local function retention(options, state)
  local known = retentions[state][options]
  if known then return known end
  local rule = options[state == "completed" and OPTION.keep_completed or OPTION.keep_failed]
  local is_default = rule == nil and state == "completed" and options[OPTION.own]
  local keep = is_default and DEFAULT_KEEP_COMPLETED or read_retention(rule)
  retentions[state][options] = keep
  return keep
end

local function forget_all(queue, set, ids, now)
  if #ids == 0 then return end
  for _, id in ipairs(ids) do forget_job(queue, id, now) end
  redis.call("ZREM", set, unpack(ids))
end

local function trim(queue, set, keep, now)
  if keep.age_ms then
    local oldest = now - keep.age_ms
    forget_all(queue, set, redis.call("ZRANGEBYSCORE", set, "-inf", oldest, "LIMIT", 0, TRIM_LIMIT), now)
  end
  if keep.count > 0 then
    local surplus = math.min(redis.call("ZCARD", set) - keep.count, TRIM_LIMIT)
    if surplus > 0 then forget_all(queue, set, redis.call("ZRANGE", set, 0, surplus - 1), now) end
  end
end

-- Where a finished job stays; a completed one is added with the others of its batch.
local function keep_finished(queue, id, state, keep, now)
  if state == "failed" then
    redis.call("ZADD", queue.failed, text(now), id)
    -- A failed child that goes may release its parent, which must not come later than what follows here.
    if keep.count > 0 or keep.age_ms then trim(queue, queue.failed, keep, now) end
    return
  end
  local kept = queue.kept[state] or {}
  local count = #kept
  kept[count + 1], kept[count + 2] = text(now), id
  queue.kept[state] = kept
  if keep.count > 0 or keep.age_ms then queue.trims[keep] = state end
end

--[[ Put a job that left its place, which was `prev`, into its final one. `fields` are name, value, … for its
  record; then come the event's word for the result or the reason, that itself, and name, value, … for the log.
  To be followed by `close_batch`. ]]
local function finish(queue, id, job, state, prev, fields, now, word, told, ...)
  local keep = retention(job.options, state)
  if job.dedup_id then end_subject(queue, id, job.dedup_id, now) end
  if job.parent_key and state == "completed" then
    child_completed(queue, id, job.parent_key, told, now)
  elseif job.parent_key then
    child_failed(queue, id, job.parent_key, job.parent, told, now)
  end
  queue.finished[state] = (queue.finished[state] or 0) + 1
  if keep.count == 0 then
    forget_job(queue, id, now)
  else
    redis.call("HSET", queue.base .. id, FIELD.finished, text(now), unpack(fields))
    if job.doomed or job.cancelling then
      redis.call("HDEL", queue.base .. id, FIELD.doomed, FIELD.cancelling)
    end
    keep_finished(queue, id, state, keep, now)
  end
  emit(queue, job.tenant, state, "jobId", id, "prev", prev, word, told, ...)
end

local function report_drained(queues)
  for _, queue in ipairs(queues) do
    if next(queue.finished) and redis.call("EXISTS", queue.wait, queue.paused, queue.active,
      queue.prioritized, queue.delayed, queue.waiting_children, queue.own .. KEY.grouped) == 0 then
      emit(queue, nil, "drained")
    end
  end
end

-- BullMQ's counts by minute, newest first. Ours come in batches, so each batch counts once.
local function count_finished(queue, state, ended, now)
  local counts = queue.base .. KEY.metrics .. state
  local before = redis.call("HINCRBY", counts, FIELD.metrics_count, ended) - ended
  local known = redis.call("HMGET", counts, FIELD.metrics_previous_time, FIELD.metrics_previous_count)
  local since = tonumber(known[1] or nil)
  if not since then
    redis.call("HSET", counts, FIELD.metrics_previous_time, now, FIELD.metrics_previous_count, 0)
    return
  end
  local minutes = math.min(math.floor(now / 60000) - math.floor(since / 60000), METRICS_MINUTES)
  if minutes <= 0 then return end
  redis.call("LPUSH", counts .. KEY.metrics_data, before - (tonumber(known[2] or nil) or 0))
  for _ = 2, minutes do redis.call("LPUSH", counts .. KEY.metrics_data, 0) end
  redis.call("LTRIM", counts .. KEY.metrics_data, 0, METRICS_MINUTES - 1)
  redis.call("HSET", counts, FIELD.metrics_previous_time, now, FIELD.metrics_previous_count, before)
end

-- In a queue with a cap, whoever sleeps is to learn that there is room again.
local function offer_room(queue)
  if #queue.unstalled == 0 or not settings(queue).concurrency then return end
  if redis.call("EXISTS", queue.wait, queue.prioritized, queue.own .. KEY.ring) > 0 then queue.has_work = true end
end

-- What follows from the jobs that ended, once for the whole batch.
local function close_batch(queues, now)
  delete_locks(queues)
  clear_suspicion(queues)
  for _, queue in ipairs(queues) do
    for state, kept in pairs(queue.kept) do
      in_chunks(kept, function(...) redis.call("ZADD", queue[state], ...) end)
    end
    for keep, state in pairs(queue.trims) do trim(queue, queue[state], keep, now) end
    for state, ended in pairs(queue.finished) do count_finished(queue, state, ended, now) end
    offer_room(queue)
  end
  announce(queues)
end

-- How a failure is told in the record: its text, its stack, and what BullMQ has no words for.
local function failure_fields(queue, id, job, failure, attempts_made)
  local fields = {
    FIELD.failed_reason, failure.message,
    FIELD.failure, string.format("%d %s", attempts_made, failure.details),
    FIELD.attempts_made, text(attempts_made),
  }
  if failure.stack then
    local readable, stacks = pcall(cjson.decode, redis.call("HGET", queue.base .. id, FIELD.stacks) or "[]")
    if not readable or type(stacks) ~= "table" then stacks = {} end
    stacks[#stacks + 1] = failure.stack
    local limit = tonumber(job.options[OPTION.keep_stacks]) or DEFAULT_KEEP_STACKS
    while #stacks > limit do table.remove(stacks, 1) end
    fields[#fields + 1] = FIELD.stacks
    fields[#fields + 1] = #stacks > 0 and cjson.encode(stacks) or "[]"
  end
  return fields
end

-- End a job as failed that left its place, which was `prev`.
local function fail(queue, id, job, prev, failure, attempts_made, now)
  finish(queue, id, job, "failed", prev, failure_fields(queue, id, job, failure, attempts_made), now,
    "failedReason", failure.message, "failure", failure.details)
end

local function cancellation(reason)
  local message = reason == "" and "cancelled" or "cancelled: " .. reason
  return { message = message, details = '{"kind":"cancelled"}' }
end

-- End a job that is past its start-by time; it left its place.
local function expire(queue, id, prev, now)
  queue.failed_here[#queue.failed_here + 1] = id
  local job = read_job(queue, id)
  local failure = { message = "not started in time", details = '{"kind":"expired"}' }
  fail(queue, id, job, prev, failure, job.attempts_made, now)
end

-- What all of these queues failed by themselves, as an answer.
local function failed_here(queues)
  local failed = {}
  for _, queue in ipairs(queues) do
    for _, id in ipairs(queue.failed_here) do failed[#failed + 1] = { queue.base, id } end
  end
  return failed
end

--[[ The end of a job: its subject is freed, its record stays as long as its retention says. ]]
local TRIM_LIMIT = 1000 -- records removed by one call at most; the next one goes on
local METRICS_MINUTES = 10080 -- a week of minutes

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
    delay = tonumber(options[OPTION.delay]) or 0,
    priority = tonumber(options[OPTION.priority]) or 0,
    lifo = options[OPTION.lifo] == true,
    tenant = own[OPTION.tenant],
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

local function plan_trim(queue, set, keep)
  if keep.count < 0 and not keep.age_ms then return end
  local rule = string.format("%s %d %s", set, keep.count, keep.age_ms or "")
  queue.trims[rule] = { set = set, keep = keep }
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

--[[ Put a job that left its place into its final one.
  `ending`: state "completed" or "failed", prev, fields (name, value, … for the record),
  event (name, value, … for the log), told (the result or the reason, for its parent) ]]
local function finish(queue, id, job, ending, now)
  local is_completed = ending.state == "completed"
  local rule = job.options[is_completed and OPTION.keep_completed or OPTION.keep_failed]
  local keep = read_retention(rule)
  if job.dedup_id then end_subject(queue, id, job.dedup_id, now) end
  if job.parent_key and is_completed then
    child_completed(queue, id, job.parent_key, ending.told, now)
  elseif job.parent_key then
    child_failed(queue, id, job.parent_key, job.parent, ending.told, now)
  end
  queue.finished[ending.state] = (queue.finished[ending.state] or 0) + 1
  if keep.count == 0 then
    forget_job(queue, id, now)
  else
    local set = is_completed and queue.completed or queue.failed
    redis.call("HSET", queue.base .. id, FIELD.finished, now, unpack(ending.fields))
    if job.doomed or job.cancelling then
      redis.call("HDEL", queue.base .. id, FIELD.doomed, FIELD.cancelling)
    end
    redis.call("ZADD", set, now, id)
    -- A failed child that goes may release its parent, which must not come later than what follows here.
    if is_completed then plan_trim(queue, set, keep) else trim(queue, set, keep, now) end
  end
  emit(queue, job.tenant, ending.state, "jobId", id, "prev", ending.prev, unpack(ending.event))
end

local function report_drained(queues)
  for _, queue in ipairs(queues) do
    if next(queue.finished) and redis.call("EXISTS", queue.wait, queue.paused, queue.active,
      queue.prioritized, queue.delayed, queue.waiting_children) == 0 then
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

-- What follows from the jobs that ended, once for the whole batch.
local function close_batch(queues, now)
  clear_suspicion(queues)
  for _, queue in ipairs(queues) do
    for _, planned in pairs(queue.trims) do trim(queue, planned.set, planned.keep, now) end
    for state, ended in pairs(queue.finished) do count_finished(queue, state, ended, now) end
  end
  announce(queues)
end

-- How a failure is told in the record: its text, its stack, and what BullMQ has no words for.
local function failure_fields(queue, id, job, failure, attempts_made)
  local fields = {
    FIELD.failed_reason, failure.message,
    FIELD.failure, string.format("%d %s", attempts_made, failure.details),
    FIELD.attempts_made, attempts_made,
  }
  if failure.stack then
    local readable, stacks = pcall(cjson.decode, redis.call("HGET", queue.base .. id, FIELD.stacks) or "[]")
    if not readable or type(stacks) ~= "table" then stacks = {} end
    stacks[#stacks + 1] = failure.stack
    local limit = tonumber(job.options[OPTION.keep_stacks]) or #stacks
    while #stacks > limit do table.remove(stacks, 1) end
    fields[#fields + 1] = FIELD.stacks
    fields[#fields + 1] = #stacks > 0 and cjson.encode(stacks) or "[]"
  end
  return fields
end

-- End a job as failed that left its place, which was `prev`.
local function fail(queue, id, job, prev, failure, attempts_made, now)
  finish(queue, id, job, {
    state = "failed",
    prev = prev,
    fields = failure_fields(queue, id, job, failure, attempts_made),
    event = { "failedReason", failure.message, "failure", failure.details },
    told = failure.message,
  }, now)
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

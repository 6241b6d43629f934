--[[ The end of a job: its subject is freed, its record stays as long as its retention says. ]]
local DEFAULT_KEEP_COMPLETED = { count = 1000, age_ms = 86400000 } -- as job/spec.py has them
local METRICS_MINUTES = 10080 -- a week of minutes

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

-- Where a finished job stays; a completed one is added with the others of its batch.
local function keep_finished(queue, id, state, keep, now)
  if state == "failed" then
    redis.call("ZADD", queue.failed, text(now), id)
    -- A failed child that goes may release its parent, which must not come later than what follows here.
    if keep.count > 0 or keep.age_ms then trimming().trim(queue, queue.failed, keep, now) end
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
  if job.dedup_id then freeing().end_subject(queue, id, job.dedup_id, now) end
  if job.parent_key and state == "completed" then
    family().child_completed(queue, id, job.parent_key, told, now)
  elseif job.parent_key then
    family().child_failed(queue, id, job.parent_key, told, now)
  end
  queue.finished[state] = (queue.finished[state] or 0) + 1
  if keep.count == 0 then
    forgetting().forget_job(queue, id, now)
  else
    redis.call("HSET", queue.base .. id, FIELD.finished, text(now), unpack(fields))
    if job.doomed or job.cancelling then
      redis.call("HDEL", queue.base .. id, FIELD.doomed, FIELD.cancelling)
    end
    keep_finished(queue, id, state, keep, now)
  end
  emit(queue, job.tenant, state, "jobId", id, "prev", prev, word, told, ...)
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

return {
  retention = retention,
  finish = finish,
  count_finished = count_finished,
}

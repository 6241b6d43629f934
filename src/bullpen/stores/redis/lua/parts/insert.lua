--[[ Adding one job: its id, its subject, its record, its place. ]]
local function is_taken(queue, id, now)
  if redis.call("EXISTS", queue.base .. id) == 1 then return true end
  local until_ms = redis.call("ZSCORE", queue.own .. KEY.remembered_ids, id)
  return until_ms and tonumber(until_ms) > now
end

-- Who stands for a subject. A key without an end whose job is gone would block its subject for ever.
local function subject_owner(queue, subject_key)
  local owner = redis.call("GET", subject_key)
  if not owner then return nil end
  local is_stale = redis.call("EXISTS", queue.base .. owner) == 0 and redis.call("PTTL", subject_key) == -1
  if is_stale then return nil end
  return owner
end

local function own_subject(subject_key, id, ttl)
  if ttl then
    redis.call("SET", subject_key, id, "PX", ttl)
  else
    redis.call("SET", subject_key, id)
  end
end

-- Such a job is in the middle of its work, though it stands as delayed.
local function is_parked(queue, id)
  return redis.call("HEXISTS", queue.base .. id, FIELD.parked) == 1 and redis.call("ZSCORE", queue.delayed, id) ~= false
end

local function replace_delayed(queue, job, id, owner, subject_key, now)
  local dedup = job.dedup
  local tenant = redis.call("HGET", queue.base .. owner, FIELD.tenant) or nil
  forget_job(queue, owner, now)
  emit(queue, tenant, "removed", "jobId", owner, "prev", "delayed")
  if dedup.extend and dedup.ttl then
    redis.call("SET", subject_key, id, "PX", dedup.ttl)
  else
    redis.call("SET", subject_key, id, "KEEPTTL")
  end
  redis.call("DEL", queue.base .. KEY.dedup_next .. dedup.id)
  emit(queue, job.tenant, "deduplicated", "jobId", id, "deduplicationId", dedup.id,
    "deduplicatedJobId", owner)
end

local function keep_for_later(queue, job, id)
  local next_key = queue.base .. KEY.dedup_next .. job.dedup.id
  redis.call("DEL", next_key)
  redis.call("HSET", next_key, FIELD.name, job.name, FIELD.data, job.data, FIELD.options, job.options,
    FIELD.next_id, id)
end

-- Returns nil and the outcome if the job is to be added, else who stands for it and the outcome.
local function deduplicate(queue, job, id, now)
  local dedup = job.dedup
  local subject_key = queue.base .. KEY.dedup .. dedup.id
  local owner = subject_owner(queue, subject_key)
  if not owner then
    own_subject(subject_key, id, not dedup.keep_last and dedup.ttl)
    return nil, "added"
  end
  if dedup.replace then
    if is_parked(queue, owner) or redis.call("ZREM", queue.delayed, owner) == 0 then
      return owner, "deduplicated"
    end
    replace_delayed(queue, job, id, owner, subject_key, now)
    return nil, "replaced"
  end
  local outcome = "deduplicated"
  if dedup.keep_last then
    if is_parked(queue, owner) or redis.call("LPOS", queue.active, owner) then
      keep_for_later(queue, job, id)
      outcome = "kept-last"
    end
  elseif dedup.extend and dedup.ttl then
    redis.call("PEXPIRE", subject_key, dedup.ttl)
  end
  emit(queue, job.tenant, "deduplicated", "jobId", owner, "deduplicationId", dedup.id,
    "deduplicatedJobId", id)
  return owner, outcome
end

local function also(fields, field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end

-- The log tells no tags and no workspace. To find the words elsewhere in the options costs a look, no more.
local function is_told_by_its_event(options)
  return not string.find(options, OPTION.tags, 1, true) and not string.find(options, OPTION.workspace, 1, true)
end

local function write_job(queue, job, id, now, parent)
  local options = parent and options_with_parent(job.options, parent) or job.options
  local priority = job.priority and text(job.priority) or "0"
  local fields = {
    FIELD.name, job.name, FIELD.data, job.data, FIELD.options, options,
    FIELD.added, text(now), FIELD.delay, job.delay and text(job.delay) or "0",
    FIELD.priority, priority,
  }
  if job.dedup then also(fields, FIELD.dedup_id, job.dedup.id) end
  if job.tenant then also(fields, FIELD.tenant, job.tenant) end
  if job.group then also(fields, FIELD.group, job.group) end
  if job.schedule then also(fields, FIELD.scheduler, job.schedule) end
  if job.start_by then
    also(fields, FIELD.start_by, job.start_by)
    redis.call("ZADD", queue.own .. KEY.start_by, job.start_by, id)
  end
  redis.call("HSET", queue.base .. id, unpack(fields))
  if parent then bear(queue, id, job.policy, parent) end
  if is_told_by_its_event(job.options) then
    emit(queue, job.tenant, "added", "jobId", id, "name", job.name, recorded(now, priority))
  else
    emit(queue, job.tenant, "added", "jobId", id, "name", job.name)
  end
end

local function place_new(queue, job, id, now)
  if job.has_children then
    await_children(queue, id, job.tenant, nil, now)
  elseif job.delay then
    put_until(queue, id, now + job.delay)
    emit(queue, job.tenant, "delayed", "jobId", id, "delay", text(now + job.delay))
  else
    put_in_line(queue, id, job.priority or 0, job.lifo and "head" or "end", job.group)
    emit(queue, job.tenant, "waiting", "jobId", id)
  end
end

-- Take the numbers of that many jobs in one go.
local function take_numbers(queue, count)
  queue.last_number = redis.call("INCRBY", queue.counter, text(count))
  queue.next_number = queue.last_number - count + 1
end

local function next_number(queue)
  local number = queue.next_number
  if not number or number > queue.last_number then return redis.call("INCR", queue.counter) end
  queue.next_number = number + 1
  return number
end

-- Returns the id of the job that stands, and the outcome as a word. `parent` is {queue, id}.
local function insert(queue, job, now, parent)
  local number = next_number(queue)
  local id = job.id or string.format("%d", number)
  if job.id and is_taken(queue, id, now) then
    emit(queue, job.tenant, "duplicated", "jobId", id)
    if parent then adopt(queue, id, job.policy, parent) end
    return id, "duplicate"
  end
  local outcome = "added"
  if job.dedup then
    local standing
    standing, outcome = deduplicate(queue, job, id, now)
    if standing then return standing, outcome end
  end
  write_job(queue, job, id, now, parent)
  place_new(queue, job, id, now)
  return id, outcome
end

--[[ Subjects: one job at a time stands for each, and decides what becomes of the next. ]]

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
  forgetting().forget_job(queue, owner, now)
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

return {
  subject_owner = subject_owner,
  own_subject = own_subject,
  keep_for_later = keep_for_later,
  deduplicate = deduplicate,
}

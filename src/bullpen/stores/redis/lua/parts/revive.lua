--[[ Retrying by hand: a finished job goes back into its line, with fresh attempts. ]]

local function is_ours_of_an_attempt(field)
  return field == FIELD.failure or field == FIELD.start_by or field == FIELD.note or field == FIELD.parked
    or string.sub(field, 1, #FIELD.crash) == FIELD.crash
end

local function note_retry(queue, id, job, state)
  local logs = queue.base .. id .. KEY.logs
  local limit = tonumber(job.options[OPTION.keep_logs])
  if limit and limit <= 0 then return end
  redis.call("RPUSH", logs, string.format("retried by hand from %s after %d attempts", state, job.attempts_made))
  if limit then redis.call("LTRIM", logs, -limit, -1) end
end

local function revive(queue, id, state, now)
  local job = read_job(queue, id)
  local job_key = queue.base .. id
  local stale = {}
  for _, field in ipairs(redis.call("HKEYS", job_key)) do
    if is_ours_of_an_attempt(field) then stale[#stale + 1] = field end
  end
  redis.call("HDEL", job_key, FIELD.finished, FIELD.started, FIELD.failed_reason, FIELD.result, FIELD.progress,
    FIELD.stalls, FIELD.attempts_made, FIELD.doomed, FIELD.cancelling, unpack(stale))
  redis.call("HSET", job_key, FIELD.delay, 0, FIELD.entered, now)
  note_retry(queue, id, job, state)
  if job.parent_key then family().child_back(queue, id, job.parent_key) end
  if family().has_pending_children(queue, id) then
    family().await_children(queue, id, job.tenant, state, now)
  else
    put_in_line(queue, id, job.priority, "end", job.group)
    emit(queue, job.tenant, "waiting", "jobId", id, "prev", state)
  end
end

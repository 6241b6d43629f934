--[[ Verdicts: how each end of an attempt is carried out, by its word and by what it says.
  The job has left `active` already. Each returns the outcome if that is another one than "settled". ]]
local carry_out = {}

-- The job ends as it was to end when next claimed: a child of it failed, and it with the child.
local function end_as_doomed(queue, id, job, now)
  local failure = { message = job.doomed, details = '{"kind":"child-failed"}' }
  failing().fail(queue, id, job, "active", failure, job.attempts_made + 1, now)
end

-- What its event says beside, see `recorded`.
local function end_as_told(job, now)
  if finishing().retention(job.options, "completed").count == 0 then return "kept", "0" end
  if job.attempts_made == 0 then return recorded(now, text(job.priority)) end
end

-- A job with pending children cannot complete: BullMQ refuses it, and here it waits for them and runs again.
-- Returns the outcome, as all verdicts do, and whether it did complete.
local function complete(queue, id, job, result, now)
  if job.doomed then
    end_as_doomed(queue, id, job, now)
  elseif not job.may_have_children or not family().has_pending_children(queue, id) then
    local fields = { FIELD.result, result, FIELD.attempts_made, text(job.attempts_made + 1) }
    finishing().finish(queue, id, job, "completed", "active", fields, now, "returnvalue", result,
      end_as_told(job, now))
    return nil, true
  elseif job.cancelling then
    releasing().end_as_asked(queue, id, job, now)
  else
    family().await_children(queue, id, job.tenant, "active", now)
    return "pending-children"
  end
end

function carry_out.completed(queue, id, job, result, now)
  local outcome = complete(queue, id, job, result, now)
  return outcome
end

carry_out["completed-then"] = function(queue, id, job, said, now, queues)
  local outcome, is_complete = complete(queue, id, job, said.result, now)
  if is_complete then trees().insert_all(queues, said.followers, now) end
  return outcome
end

carry_out["await-children"] = function(queue, id, job, _, now)
  if job.doomed then
    end_as_doomed(queue, id, job, now)
  elseif family().has_pending_children(queue, id) then
    family().await_children(queue, id, job.tenant, "active", now)
  else
    redis.call("HSET", queue.base .. id, FIELD.entered, now)
    put_in_line(queue, id, job.priority, "head", job.group)
    emit(queue, job.tenant, "waiting", "jobId", id, "prev", "active")
  end
end

function carry_out.failed(queue, id, job, said, now)
  local failure = said.failure
  local attempts_made = job.attempts_made + 1
  failing().fail(queue, id, job, "active", failure, attempts_made, now)
  local attempts = tonumber(job.options[OPTION.attempts]) or 0
  if failure.is_by_attempts and attempts_made >= attempts then
    emit(queue, job.tenant, "retries-exhausted", "jobId", id, "attemptsMade", attempts_made)
  end
end

local function delay_job(queue, id, job, delay, now)
  put_until(queue, id, now + delay)
  emit(queue, job.tenant, "delayed", "jobId", id, "delay", now + delay, "prev", "active")
end

function carry_out.retry(queue, id, job, said, now)
  local job_key = queue.base .. id
  local fields = failing().failure_fields(queue, id, job, said.failure, job.attempts_made + 1)
  redis.call("HSET", job_key, FIELD.delay, said.delay, FIELD.entered, now, unpack(fields))
  redis.call("HDEL", job_key, FIELD.note)
  if said.delay > 0 then
    delay_job(queue, id, job, said.delay, now)
  else
    put_in_line(queue, id, job.priority, job.options[OPTION.lifo] == true and "head" or "end",
      job.group)
    emit(queue, job.tenant, "waiting", "jobId", id, "prev", "active")
  end
end

function carry_out.postponed(queue, id, job, said, now)
  redis.call("HSET", queue.base .. id, FIELD.delay, said.delay, FIELD.note, said.note,
    FIELD.entered, now)
  delay_job(queue, id, job, said.delay, now)
end

-- A signal that is in the mailbox already came before the job could park.
function carry_out.parked(queue, id, job, said, now)
  local due, job_key = said.due, queue.base .. id
  if due <= now or steps().find_signal(queue, id, said.signals) then
    redis.call("HSET", job_key, FIELD.delay, 0, FIELD.entered, now)
    put_in_line(queue, id, job.priority, "end", job.group)
    emit(queue, job.tenant, "waiting", "jobId", id, "prev", "active")
    return
  end
  redis.call("HSET", job_key, FIELD.delay, due - now, FIELD.note, said.note, FIELD.entered, now,
    FIELD.parked, said.parked)
  delay_job(queue, id, job, due - now, now)
end

function carry_out.released(queue, id, job, said, now)
  releasing().release(queue, id, job, said.crash, said.limits, now)
end

function carry_out.limited(queue, id, job, said, now)
  if said.group_only and job.group then
    groups().close_group(queue, job.group, now, said.delay)
  elseif said.delay > 0 then
    closing().close_queue(queue, said.delay, now)
  end
  releasing().release(queue, id, job, nil, nil, now)
end

return carry_out

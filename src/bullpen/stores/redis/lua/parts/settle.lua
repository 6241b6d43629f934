--[[ Verdicts: how each end of an attempt is carried out. The job has left `active` already. ]]
local carry_out = {}

function carry_out.completed(queue, id, job, settlement, now, queues)
  finish(queue, id, job, {
    state = "completed",
    prev = "active",
    fields = { FIELD.result, settlement.result, FIELD.attempts_made, job.attempts_made + 1 },
    event = { "returnvalue", settlement.result },
  }, now)
  for _, follower in ipairs(settlement.followers or {}) do
    insert(queues[follower.queue], follower, now)
  end
end

function carry_out.failed(queue, id, job, settlement, now)
  local failure = settlement.failure
  local attempts_made = job.attempts_made + 1
  finish(queue, id, job, {
    state = "failed",
    prev = "active",
    fields = failure_fields(queue, id, job, failure, attempts_made),
    event = { "failedReason", failure.message, "failure", failure.details },
  }, now)
  local attempts = tonumber(job.options[OPTION.attempts]) or 0
  if not failure.is_cancel and attempts_made >= attempts then
    emit(queue, job.tenant, "retries-exhausted", "jobId", id, "attemptsMade", attempts_made)
  end
end

local function delay_job(queue, id, job, delay, now)
  put_until(queue, id, now + delay)
  emit(queue, job.tenant, "delayed", "jobId", id, "delay", now + delay, "prev", "active")
end

function carry_out.retry(queue, id, job, settlement, now)
  local job_key = queue.base .. id
  local fields = failure_fields(queue, id, job, settlement.failure, job.attempts_made + 1)
  redis.call("HSET", job_key, FIELD.delay, settlement.delay, unpack(fields))
  redis.call("HDEL", job_key, FIELD.note)
  if settlement.delay > 0 then
    delay_job(queue, id, job, settlement.delay, now)
  else
    put_in_line(queue, id, job.priority, job.options[OPTION.lifo] == true and "head" or "end")
    emit(queue, job.tenant, "waiting", "jobId", id, "prev", "active")
  end
end

function carry_out.postponed(queue, id, job, settlement, now)
  redis.call("HSET", queue.base .. id, FIELD.delay, settlement.delay, FIELD.note, settlement.note)
  delay_job(queue, id, job, settlement.delay, now)
end

local function has_crashed_too_often(queue, id, limits)
  local found = redis.call("HMGET", queue.base .. id, FIELD.crash .. "killed", FIELD.crash .. "out-of-memory",
    FIELD.crash .. "lost-heartbeat")
  local killed, starved, lost = tonumber(found[1]) or 0, tonumber(found[2]) or 0, tonumber(found[3]) or 0
  local total = killed + starved + lost
  local too_often = killed > limits.killed or starved > limits.out_of_memory or lost > limits.lost_heartbeat
  return too_often or total > limits.total, total
end

function carry_out.released(queue, id, job, settlement, now)
  local crash, limits = settlement.crash, settlement.limits
  if crash then
    redis.call("HINCRBY", queue.base .. id, FIELD.crash .. crash, 1)
    if crash ~= "deploy" then emit(queue, job.tenant, "stalled", "jobId", id, "name", crash) end
  end
  if limits then
    local too_often, total = has_crashed_too_often(queue, id, limits)
    if too_often then
      queue.failed_here[#queue.failed_here + 1] = id
      local message = string.format("lost its worker %d times (last: %s)", total, crash)
      local failure = { message = message, details = '{"kind":"stalled"}' }
      finish(queue, id, job, {
        state = "failed",
        prev = "active",
        fields = failure_fields(queue, id, job, failure, job.attempts_made),
        event = { "failedReason", message, "failure", failure.details },
      }, now)
      return
    end
  end
  put_in_line(queue, id, job.priority, "head")
  emit(queue, job.tenant, "waiting", "jobId", id, "prev", "active")
end

local function settle_one(queues, settlement, now)
  local queue, id = queues[settlement.queue], settlement.id
  if not is_held(queue, id, settlement.token, settlement.epoch) then return "lease-lost" end
  local job = read_job(queue, id)
  if job.epoch == 0 or not leave_active(queue, id) then return "lease-lost" end
  carry_out[settlement.verdict](queue, id, job, settlement, now, queues)
  return "settled"
end

-- What is handed back goes last, and the last of it first: so the line is as it was.
local function settle(queues, settlements, now)
  local outcomes = {}
  for i, settlement in ipairs(settlements) do
    if settlement.verdict ~= "released" then outcomes[i] = settle_one(queues, settlement, now) end
  end
  for i = #settlements, 1, -1 do
    if not outcomes[i] then outcomes[i] = settle_one(queues, settlements[i], now) end
  end
  clear_suspicion(queues)
  trim_finished(queues, now)
  return outcomes
end

--[[ Handing back: a job that left `active` unfinished goes to the head of its line, or ends. ]]

-- End a job that was asked to stop while it ran, and that was left to run again.
local function end_as_asked(queue, id, job, now)
  failing().fail(queue, id, job, "active", failing().cancellation(job.cancelling), job.attempts_made, now)
end

-- What only BullMQ counted, it noticed by the missing heartbeat.
local function read_crashes(queue, id)
  local found = redis.call("HMGET", queue.base .. id, FIELD.crash .. "killed", FIELD.crash .. "out-of-memory",
    FIELD.crash .. "lost-heartbeat", FIELD.stalls)
  local killed, starved, lost = tonumber(found[1]) or 0, tonumber(found[2]) or 0, tonumber(found[3]) or 0
  local stalls = math.max(tonumber(found[4]) or 0, killed + starved + lost)
  return { killed = killed, starved = starved, lost = stalls - killed - starved, total = stalls }
end

local function exceeds(crashes, limits)
  return crashes.killed > limits.killed or crashes.starved > limits.out_of_memory
    or crashes.lost > limits.lost_heartbeat or crashes.total > limits.total
end

-- A deploy is recorded and never held against the job.
local function note_crash(queue, id, job, crash)
  local job_key = queue.base .. id
  redis.call("HINCRBY", job_key, FIELD.crash .. crash, 1)
  if crash == "deploy" then return end
  redis.call("HINCRBY", job_key, FIELD.stalls, 1)
  emit(queue, job.tenant, "stalled", "jobId", id, "name", crash)
end

-- Whether it waits again. With limits, a job that crashed too often fails instead.
local function release(queue, id, job, crash, limits, now)
  if crash then note_crash(queue, id, job, crash) end
  if job.cancelling then
    end_as_asked(queue, id, job, now)
    return false
  end
  local crashes = limits and read_crashes(queue, id)
  if crashes and exceeds(crashes, limits) then
    queue.failed_here[#queue.failed_here + 1] = id
    local message = string.format("lost its worker %d times (last: %s)", crashes.total, crash)
    local failure = { message = message, details = '{"kind":"stalled"}' }
    failing().fail(queue, id, job, "active", failure, job.attempts_made, now)
    return false
  end
  redis.call("HSET", queue.base .. id, FIELD.entered, now)
  put_in_line(queue, id, job.priority, "head", job.group)
  emit(queue, job.tenant, "waiting", "jobId", id, "prev", "active")
  return true
end

return {
  end_as_asked = end_as_asked,
  release = release,
}

--[[ Ends that are failures. ]]
local DEFAULT_KEEP_STACKS = 10

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
  finishing().finish(queue, id, job, "failed", prev, failure_fields(queue, id, job, failure, attempts_made), now,
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

return {
  failure_fields = failure_fields,
  fail = fail,
  cancellation = cancellation,
  expire = expire,
}

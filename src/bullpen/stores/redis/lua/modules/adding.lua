--[[ Adding one job: its id, its subject, its record, its place. ]]
local function is_taken(queue, id, now)
  if redis.call("EXISTS", queue.base .. id) == 1 then return true end
  local until_ms = redis.call("ZSCORE", queue.own .. KEY.remembered_ids, id)
  return until_ms and tonumber(until_ms) > now
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
  local options = parent and kinship().options_with_parent(job.options, parent) or job.options
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
  if parent then kinship().bear(queue, id, job.policy, parent) end
  if is_told_by_its_event(job.options) then
    emit(queue, job.tenant, "added", "jobId", id, "name", job.name, recorded(now, priority))
  else
    emit(queue, job.tenant, "added", "jobId", id, "name", job.name)
  end
end

local function place_new(queue, job, id, now)
  if job.has_children then
    family().await_children(queue, id, job.tenant, nil, now)
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
    if parent then kinship().adopt(queue, id, job.policy, parent) end
    return id, "duplicate"
  end
  local outcome = "added"
  if job.dedup then
    local standing
    standing, outcome = subjects().deduplicate(queue, job, id, now)
    if standing then return standing, outcome end
  end
  write_job(queue, job, id, now, parent)
  place_new(queue, job, id, now)
  return id, outcome
end

return {
  is_taken = is_taken,
  take_numbers = take_numbers,
  insert = insert,
}

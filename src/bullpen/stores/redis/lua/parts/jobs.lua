--[[ The job's own record: what is known of it, and how it is forgotten. ]]
local ID_MEMORY_MS = 86400000

local options_by_text = {}

-- The options as a table; jobs of one batch mostly share theirs, so each text is read once.
local function read_options(text)
  text = text or "{}"
  local options = options_by_text[text]
  if not options then
    local readable, value = pcall(cjson.decode, text)
    options = readable and type(value) == "table" and value or {}
    options_by_text[text] = options
  end
  return options
end

-- What the end of a job must know of it; a job that is gone has an empty record.
local function read_job(queue, id)
  local found = redis.call("HMGET", queue.base .. id, FIELD.epoch, FIELD.attempts_made, FIELD.options,
    FIELD.priority, FIELD.tenant, FIELD.dedup_id, FIELD.doomed, FIELD.cancelling, FIELD.parent_key, FIELD.parent,
    FIELD.group)
  local job = {
    epoch = tonumber(found[1] or nil) or 0,
    attempts_made = tonumber(found[2] or nil) or 0,
    options = read_options(found[3]),
    priority = tonumber(found[4] or nil) or 0,
  }
  -- Most jobs have none of these, and a place in a table costs as much for nil.
  if found[5] then job.tenant = found[5] end
  if found[6] then job.dedup_id = found[6] end
  if found[7] then job.doomed = found[7] end
  if found[8] then job.cancelling = found[8] end
  if found[9] then job.parent_key = found[9] end
  if found[10] then job.parent = found[10] end
  if found[11] then job.group = found[11] end
  return job
end

-- Ids that the store gives are whole numbers, those of ticks are the scheduler's: producers choose no such.
local function is_explicit(id)
  return not string.find(id, "^[1-9]%d*$") and string.sub(id, 1, #KEY.tick) ~= KEY.tick
end

-- The next tick of a scheduler: without it the schedule would stop.
local function is_pending_tick(queue, id)
  if string.sub(id, 1, #KEY.tick) ~= KEY.tick then return false end
  local scheduler = redis.call("HGET", queue.base .. id, FIELD.scheduler)
  local due = scheduler and redis.call("ZSCORE", queue.base .. KEY.schedulers, scheduler)
  return due ~= nil and due ~= false and id == KEY.tick .. scheduler .. ":" .. string.format("%.0f", tonumber(due))
end

-- An explicit id stays taken for a day after its add, though its job is forgotten.
local function remember_id(queue, id, now)
  local added = tonumber(redis.call("HGET", queue.base .. id, FIELD.added) or nil) or now
  if added + ID_MEMORY_MS <= now then return end
  redis.call("ZADD", queue.own .. KEY.remembered_ids, added + ID_MEMORY_MS, id)
end

-- What durable steps left: the journal, the mailbox, and that there are any.
local function delete_steps(queue, id)
  redis.call("ZREM", queue.own .. KEY.with_steps, id)
  redis.call("DEL", queue.own .. KEY.journal .. id, queue.own .. KEY.mailbox .. id)
end

local function delete_record(queue, id)
  local job_key = queue.base .. id
  delete_steps(queue, id)
  redis.call("DEL", job_key, job_key .. KEY.logs, job_key .. KEY.dependencies,
    job_key .. KEY.processed_children, job_key .. KEY.failed_children, job_key .. KEY.unsuccessful_children)
end

local function forget_job(queue, id, now)
  if is_explicit(id) then remember_id(queue, id, now) end
  local parent_key = redis.call("HGET", queue.base .. id, FIELD.parent_key)
  delete_record(queue, id)
  if parent_key then child_gone(queue, id, parent_key, now) end
end

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
  return {
    epoch = tonumber(found[1] or nil) or 0,
    attempts_made = tonumber(found[2] or nil) or 0,
    options = read_options(found[3]),
    priority = tonumber(found[4] or nil) or 0,
    tenant = found[5] or nil,
    dedup_id = found[6] or nil,
    doomed = found[7] or nil,
    cancelling = found[8] or nil,
    parent_key = found[9] or nil,
    parent = found[10] or nil,
    group = found[11] or nil,
  }
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
  redis.call("ZADD", queue.remembered_ids, added + ID_MEMORY_MS, id)
end

-- What durable steps left: the journal, the mailbox, and that there are any.
local function delete_steps(queue, id)
  redis.call("ZREM", queue.with_steps, id)
  redis.call("DEL", queue.journal .. id, queue.mailbox .. id)
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

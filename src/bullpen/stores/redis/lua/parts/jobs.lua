--[[ The job's own record: what is known of it, and how it is forgotten. ]]
local ID_MEMORY_MS = 86400000

local options_by_text = {}

-- The options as a table; jobs of one batch mostly share theirs, so each text is read once.
local function read_options(text)
  local options = options_by_text[text]
  if not options then
    local readable, value = pcall(cjson.decode, text or "{}")
    options = readable and type(value) == "table" and value or {}
    options_by_text[text] = options
  end
  return options
end

-- What the end of a job must know of it; a job that is gone has an empty record.
local function read_job(queue, id)
  local found = redis.call("HMGET", queue.base .. id, FIELD.epoch, FIELD.attempts_made, FIELD.options,
    FIELD.priority, FIELD.tenant, FIELD.dedup_id, FIELD.doomed)
  return {
    epoch = tonumber(found[1] or nil) or 0,
    attempts_made = tonumber(found[2] or nil) or 0,
    options = read_options(found[3]),
    priority = tonumber(found[4] or nil) or 0,
    tenant = found[5] or nil,
    dedup_id = found[6] or nil,
    is_doomed = found[7] ~= false,
  }
end

-- Ids that the store gives are whole numbers; producers may not choose such.
local function is_explicit(id)
  return not string.find(id, "^[1-9]%d*$")
end

-- An explicit id stays taken for a day after its add, though its job is forgotten.
local function remember_id(queue, id, now)
  local added = tonumber(redis.call("HGET", queue.base .. id, FIELD.added) or nil) or now
  local left = added + ID_MEMORY_MS - now
  if left > 0 then redis.call("SET", queue.remembered_ids .. id, "1", "PX", left) end
end

local function forget_job(queue, id, now)
  local job_key = queue.base .. id
  if is_explicit(id) then remember_id(queue, id, now) end
  redis.call("DEL", job_key, job_key .. KEY.logs, job_key .. KEY.dependencies,
    job_key .. KEY.processed_children, job_key .. KEY.failed_children, job_key .. KEY.unsuccessful_children)
end

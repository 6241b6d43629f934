--[[ The job's own record: what is known of it. ]]
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
  local found = redis.call("HMGET", queue.base .. id, FIELD.options, FIELD.attempts_made, FIELD.priority,
    FIELD.tenant, FIELD.doomed, FIELD.cancelling, FIELD.parent_key, FIELD.group)
  local job = {
    is_there = found[1] ~= false,
    attempts_made = tonumber(found[2] or nil) or 0,
    options = read_options(found[1]),
    priority = tonumber(found[3] or nil) or 0,
  }
  -- Most jobs have none of these, and a place in a table costs as much for nil.
  if found[4] then job.tenant = found[4] end
  if found[5] then job.doomed = found[5] end
  if found[6] then job.cancelling = found[6] end
  if found[7] then job.parent_key = found[7] end
  if found[8] then job.group = found[8] end
  -- Who has a subject says so in its options too.
  if job.options[OPTION.dedup] then
    job.dedup_id = redis.call("HGET", queue.base .. id, FIELD.dedup_id) or nil
  end
  return job
end

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
  local found = redis.call("HMGET", queue.base .. id, FIELD.epoch, FIELD.attempts_made, FIELD.options,
    FIELD.priority, FIELD.tenant, FIELD.dedup_id, FIELD.doomed, FIELD.cancelling, FIELD.parent_key, FIELD.group)
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
  if found[10] then job.group = found[10] end
  return job
end

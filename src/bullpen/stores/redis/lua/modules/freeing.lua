--[[ A subject is free again, and the job that was kept for that moment is added. ]]

local function positive(value)
  local number = tonumber(value) or 0
  return number > 0 and number or nil
end

-- The job that was kept for when this one ends, as it would be asked for.
local function kept_job(queue, dedup_id)
  local next_key = queue.base .. KEY.dedup_next .. dedup_id
  local found = redis.call("HMGET", next_key, FIELD.name, FIELD.data, FIELD.options, FIELD.next_id)
  if not found[4] then return nil end
  redis.call("DEL", next_key)
  local options = read_options(found[3])
  local own = options[OPTION.own] or {}
  return {
    id = found[4],
    name = found[1] or "",
    data = found[2] or "{}",
    options = found[3] or "{}",
    delay = positive(options[OPTION.delay]),
    priority = positive(options[OPTION.priority]),
    lifo = options[OPTION.lifo] == true,
    tenant = own[OPTION.tenant],
    group = own[OPTION.group],
    start_by = own[OPTION.start_by],
    dedup = { id = dedup_id, keep_last = true },
  }
end

local function free_subject(queue, dedup_id, now)
  redis.call("DEL", queue.base .. KEY.dedup .. dedup_id)
  local kept = kept_job(queue, dedup_id)
  if kept then adding().insert(queue, kept, now) end
end

local function owns_subject(queue, id, dedup_id)
  return redis.call("GET", queue.base .. KEY.dedup .. dedup_id) == id
end

-- A subject with a time of its own stays taken until then, though its job ended.
local function end_subject(queue, id, dedup_id, now)
  if not owns_subject(queue, id, dedup_id) then return end
  if redis.call("PTTL", queue.base .. KEY.dedup .. dedup_id) == -1 then free_subject(queue, dedup_id, now) end
end

return {
  free_subject = free_subject,
  owns_subject = owns_subject,
  end_subject = end_subject,
}

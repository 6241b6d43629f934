--[[ Claiming one job that left its line, and how many at most. ]]
local PROMOTE_LIMIT = "1000"
local SKIP_LIMIT = 1000 -- entries of a line that are no runnable jobs, passed over by one call at most
local GROUP_MARK = '"' .. OPTION.group .. '"'

-- A claimed job as an answer, in one list: a list in a list costs the server as much as several entries.
local function as_claimed(fields, queue, id, token, epoch)
  local count = #fields
  fields[count + 1], fields[count + 2], fields[count + 3], fields[count + 4] = queue.base, id, token, epoch
  return fields
end

-- `turn` is the name of the group whose turn it is, if the job was taken from one.
-- Returns {record fields as they were, …, base, id, token, epoch}, or nil if the entry was no runnable job and is gone.
local function activate(queue, id, lease, now, turn)
  local job_key = queue.base .. id
  local fields = redis.call("HGETALL", job_key)
  local count = #fields
  local epoch, tenant, group, is_parked, needs_check = 1, nil, nil, false, count == 0
  local priority, was_tried = "0", false
  for i = 1, count, 2 do
    local name = fields[i]
    if name == FIELD.name or name == FIELD.data or name == FIELD.added or name == FIELD.delay then
      -- Every job has these, and nothing follows from them: most fields need no look at the rest.
    elseif name == FIELD.epoch then
      epoch = (tonumber(fields[i + 1]) or 0) + 1
    elseif name == FIELD.priority then
      priority = fields[i + 1]
    elseif name == FIELD.tenant then
      tenant = fields[i + 1]
    elseif name == FIELD.group then
      group = fields[i + 1]
    elseif name == FIELD.options and string.find(fields[i + 1], GROUP_MARK, 1, true) then
      group = group or strays().group_in_options(fields[i + 1])
    elseif name == FIELD.parked then
      is_parked = true
    elseif name == FIELD.start_by or name == FIELD.cancelling then
      needs_check = true
    elseif name == FIELD.attempts_made or name == FIELD.legacy_attempts_made or name == FIELD.failed_reason then
      was_tried = true
    end
  end
  if group and not turn then
    strays().send_to_group(queue, id, group, fields)
    return nil
  end
  if needs_check and not strays().may_run(queue, id, fields, now) then return nil end
  local token = lease.token_prefix .. id
  redis.call("SET", job_key .. KEY.lock, token, "PX", text(lease.ms))
  redis.call("HSET", job_key, FIELD.started, text(now), FIELD.epoch, text(epoch), FIELD.worker, lease.worker)
  if is_parked then redis.call("HDEL", job_key, FIELD.parked) end
  if was_tried then
    emit(queue, tenant, "active", "jobId", id, "prev", "waiting")
  else
    emit(queue, tenant, "active", "jobId", id, "prev", "waiting", recorded(now, priority))
  end
  return as_claimed(fields, queue, id, token, epoch)
end

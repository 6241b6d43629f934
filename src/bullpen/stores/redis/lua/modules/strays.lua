--[[ Entries of a line that may be no jobs to run, or belong elsewhere. ]]

local function by_name(fields)
  local known = {}
  for i = 1, #fields, 2 do known[fields[i]] = fields[i + 1] end
  return known
end

-- Whether an entry of the line is a job to run. If not, it is gone from `active`, and ended if it is a job.
local function may_run(queue, id, fields, now)
  local known = by_name(fields)
  local start_by = not known[FIELD.started] and tonumber(known[FIELD.start_by])
  local is_late = start_by and start_by < now
  local is_job = next(known) ~= nil
  if is_job and not is_late and not known[FIELD.cancelling] then return true end
  redis.call("LREM", queue.active, 1, id)
  if known[FIELD.cancelling] then
    releasing().end_as_asked(queue, id, read_job(queue, id), now)
  elseif is_job then
    failing().expire(queue, id, (tonumber(known[FIELD.priority]) or 0) > 0 and "prioritized" or "waiting", now)
  end
  return false
end

-- BullMQ put a grouped job into a line that is not its own, or made one: it is to wait in its group. One that
-- ran before was taken from a dead worker, so it goes to the head.
local function send_to_group(queue, id, group, fields)
  local known = by_name(fields)
  redis.call("LREM", queue.active, 1, id)
  redis.call("HSET", queue.base .. id, FIELD.group, group)
  groups().end_in_group(queue, group, id)
  put_in_line(queue, id, tonumber(known[FIELD.priority]) or 0, known[FIELD.started] and "head" or "end", group)
end

local function group_in_options(options)
  local own = read_options(options)[OPTION.own]
  local group = type(own) == "table" and own[OPTION.group]
  return type(group) == "string" and group ~= "" and group or nil
end

return {
  may_run = may_run,
  send_to_group = send_to_group,
  group_in_options = group_in_options,
}

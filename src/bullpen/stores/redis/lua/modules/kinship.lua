--[[ What makes a job another's child: in its own record, and in its parent's keys. ]]

-- How a parent is named in a child's record and options.
local function parent_fields(parent, policy)
  local told = { [OPTION.parent_id] = parent.id, [OPTION.parent_queue_key] = string.sub(parent.queue.base, 1, -2) }
  if policy then told[policy] = true end
  return FIELD.parent_key, parent.queue.base .. parent.id, FIELD.parent, cjson.encode(told)
end

-- The options with the parent in them, by which dashboards find the root of a tree. They are never empty.
local function options_with_parent(options, parent)
  local told = { [OPTION.parent_id] = parent.id, [OPTION.parent_queue] = string.sub(parent.queue.base, 1, -2) }
  return string.format('{"%s":%s,', OPTION.parent, cjson.encode(told)) .. string.sub(options, 2)
end

-- A new job is a child; what its parent may know of an older one with this id is no longer so.
local function bear(queue, id, policy, parent)
  local parent_key = parent.queue.base .. parent.id
  redis.call("HSET", queue.base .. id, parent_fields(parent, policy))
  if parent.is_older then family().forget_outcome(parent_key, queue.base .. id) end
  redis.call("SADD", parent_key .. KEY.dependencies, queue.base .. id)
end

-- A job that is there becomes a child as it stands. One that is another's child stays that, and a child of
-- this parent what it is to it.
local function adopt(queue, id, policy, parent)
  local job_key, parent_key = queue.base .. id, parent.queue.base .. parent.id
  if redis.call("EXISTS", job_key) == 0 then return end
  local found = redis.call("HMGET", job_key, FIELD.parent_key, FIELD.result, FIELD.finished)
  if found[1] and family().has_child(found[1], job_key) then return end
  -- What was known of another job with this id, which is gone, is no longer so.
  family().forget_outcome(parent_key, job_key)
  redis.call("HSET", job_key, parent_fields(parent, policy))
  if found[2] and found[3] then
    redis.call("HSET", parent_key .. KEY.processed_children, job_key, found[2])
  else
    redis.call("SADD", parent_key .. KEY.dependencies, job_key)
  end
end

return {
  options_with_parent = options_with_parent,
  bear = bear,
  adopt = adopt,
}

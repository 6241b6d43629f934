--[[ Families: parents that wait for their children, in whichever queue each of them is.
  A parent has the keys of its children in four places: those that are pending, the results of those that
  completed, the reasons of those that failed and are ignored, and those that failed and take it along.
  A child has its parent's key and, as JSON, what its failure means there. ]]

-- A job's queue and id by its full key; nil if the key is not one of this prefix.
local function find_relative(queue, job_key)
  local prefix = string.match(queue.base, "^(.*):[^:]+:$")
  local name, id = string.match(string.sub(job_key, #prefix + 2), "^([^:]+):(.+)$")
  if not id then return nil end
  return queue_at(prefix .. ":" .. name .. ":"), id
end

-- Whether the parent is there and has this child: pending, or with what became of it.
local function has_child(parent_key, child_key)
  return redis.call("EXISTS", parent_key) == 1
    and (redis.call("SISMEMBER", parent_key .. KEY.dependencies, child_key) == 1
      or redis.call("HEXISTS", parent_key .. KEY.processed_children, child_key) == 1
      or redis.call("HEXISTS", parent_key .. KEY.failed_children, child_key) == 1
      or redis.call("ZSCORE", parent_key .. KEY.unsuccessful_children, child_key) ~= false)
end

local function has_pending_children(queue, id)
  return redis.call("EXISTS", queue.base .. id .. KEY.dependencies) == 1
end

-- Let a parent run that left its place: at the head of its line, by its priority, or after its delay.
local function let_run(queue, id, prev, now)
  local job_key = queue.base .. id
  local found = redis.call("HMGET", job_key, FIELD.priority, FIELD.delay, FIELD.tenant, FIELD.group)
  local priority, delay = tonumber(found[1] or nil) or 0, tonumber(found[2] or nil) or 0
  redis.call("HSET", job_key, FIELD.entered, now)
  if delay > 0 then
    put_until(queue, id, now + delay)
    emit(queue, found[3] or nil, "delayed", "jobId", id, "delay", now + delay, "prev", prev)
  else
    put_in_line(queue, id, priority, priority > 0 and "end" or "head", found[4] or nil)
    emit(queue, found[3] or nil, "waiting", "jobId", id, "prev", prev)
  end
end

local function release_parent(queue, id, now)
  if redis.call("ZREM", queue.waiting_children, id) == 0 then return end
  -- An entry whose record is lost is no job.
  if redis.call("EXISTS", queue.base .. id) == 1 then let_run(queue, id, "waiting-children", now) end
end

local function release_if_ready(queue, id, now)
  if not has_pending_children(queue, id) then release_parent(queue, id, now) end
end

-- Let a job wait that left its place and has pending children.
local function await_children(queue, id, tenant, prev, now)
  redis.call("ZADD", queue.waiting_children, now, id)
  redis.call("HSET", queue.base .. id, FIELD.entered, now)
  if prev then
    emit(queue, tenant, "waiting-children", "jobId", id, "prev", prev)
  else
    emit(queue, tenant, "waiting-children", "jobId", id)
  end
end

-- The parent fails as soon as somebody claims it, and until then it need wait for nothing.
local function doom_parent(queue, id, child_key, now)
  local job_key = queue.base .. id
  -- One that ended is known by its record: it may not be in its place yet.
  if redis.call("EXISTS", job_key) == 0 or redis.call("HEXISTS", job_key, FIELD.finished) == 1 then return end
  -- A reason is read by all who see the parent: of another tenant's child it does not say which.
  local is_own = redis.call("HGET", child_key, FIELD.tenant) == redis.call("HGET", job_key, FIELD.tenant)
  redis.call("HSET", job_key, FIELD.doomed, is_own and "child " .. child_key .. " failed" or "child failed")
  local prev
  if redis.call("ZREM", queue.waiting_children, id) == 1 then
    prev = "waiting-children"
  elseif redis.call("ZREM", queue.delayed, id) == 1 then
    prev = "delayed"
  end
  if not prev then return end
  redis.call("HSET", job_key, FIELD.delay, 0)
  let_run(queue, id, prev, now)
end

-- Whether the child was pending; it no longer is.
local function leave_pending(parent_key, child_key)
  return redis.call("SREM", parent_key .. KEY.dependencies, child_key) == 1
end

local function child_completed(queue, id, parent_key, result, now)
  local parent_queue, parent_id = find_relative(queue, parent_key)
  if not parent_id or not leave_pending(parent_key, queue.base .. id) then return end
  redis.call("HSET", parent_key .. KEY.processed_children, queue.base .. id, result)
  release_if_ready(parent_queue, parent_id, now)
end

-- What that means is said by the JSON in the child's record. Without a word there, the parent waits on.
local function child_failed(queue, id, parent_key, reason, now)
  local parent_queue, parent_id = find_relative(queue, parent_key)
  local readable, policy = pcall(cjson.decode, redis.call("HGET", queue.base .. id, FIELD.parent) or "{}")
  if not parent_id or not readable or type(policy) ~= "table" then return end
  local child_key = queue.base .. id
  if policy[OPTION.fail_parent] then
    if not leave_pending(parent_key, child_key) then return end
    redis.call("ZADD", parent_key .. KEY.unsuccessful_children, now, child_key)
    doom_parent(parent_queue, parent_id, child_key, now)
  elseif policy[OPTION.continue_parent] then
    if not leave_pending(parent_key, child_key) then return end
    redis.call("HSET", parent_key .. KEY.failed_children, child_key, reason)
    release_parent(parent_queue, parent_id, now)
  elseif policy[OPTION.ignore] or policy[OPTION.remove] then
    if not leave_pending(parent_key, child_key) then return end
    if policy[OPTION.ignore] then redis.call("HSET", parent_key .. KEY.failed_children, child_key, reason) end
    release_if_ready(parent_queue, parent_id, now)
  end
end

-- A job is forgotten: nobody waits for it any more.
local function child_gone(queue, id, parent_key, now)
  local parent_queue, parent_id = find_relative(queue, parent_key)
  if parent_id and leave_pending(parent_key, queue.base .. id) then release_if_ready(parent_queue, parent_id, now) end
end

-- Whether there was an outcome of the child.
local function forget_outcome(parent_key, child_key)
  return redis.call("ZREM", parent_key .. KEY.unsuccessful_children, child_key)
    + redis.call("HDEL", parent_key .. KEY.failed_children, child_key)
    + redis.call("HDEL", parent_key .. KEY.processed_children, child_key) > 0
end

-- A finished job is to run again: its parent, if it is there, has it pending again.
local function child_back(queue, id, parent_key)
  if redis.call("EXISTS", parent_key) == 0 then return end
  if forget_outcome(parent_key, queue.base .. id) then
    redis.call("SADD", parent_key .. KEY.dependencies, queue.base .. id)
  end
end

return {
  find_relative = find_relative,
  has_child = has_child,
  has_pending_children = has_pending_children,
  release_if_ready = release_if_ready,
  await_children = await_children,
  child_completed = child_completed,
  child_failed = child_failed,
  child_gone = child_gone,
  forget_outcome = forget_outcome,
  child_back = child_back,
}

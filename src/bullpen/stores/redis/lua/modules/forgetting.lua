--[[ Forgetting a job: its record and all that belongs to it. ]]
local ID_MEMORY_MS = 86400000

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

-- What durable steps left: that there are any, and then the journal and the mailbox. Most jobs have none.
local function delete_steps(queue, id)
  if redis.call("ZREM", queue.own .. KEY.with_steps, id) == 0 then return end
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
  if parent_key then family().child_gone(queue, id, parent_key, now) end
end

return {
  is_explicit = is_explicit,
  is_pending_tick = is_pending_tick,
  remember_id = remember_id,
  delete_steps = delete_steps,
  delete_record = delete_record,
  forget_job = forget_job,
}

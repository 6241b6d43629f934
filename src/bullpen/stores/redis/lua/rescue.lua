--[[ rescue: take back active jobs whose lease ran out, or all of one worker; end those that are too late to start.
  KEYS 1 the settings of the first queue
  ARGV 1 msgpack {now, queues = {{base, own}, …}, limits, crash, worker?}
  Returns {{{base, id}, …} that wait again, {{base, id}, …} that ended}
  Emits stalled, waiting, failed and what add emits ]]
local AT_ONCE = 1000 -- jobs taken back by one call at most; the next one comes soon
local SWEEP_AT_ONCE = 100
local SWEEP_EVERY_MS = 60000
local asked = cmsgpack.unpack(ARGV[1])

local queues = open_queues(asked.queues)
local recovered, cancelled = {}, {}

local function of_worker(queue, ids)
  local lost = {}
  for _, id in ipairs(ids) do
    if redis.call("HGET", queue.base .. id, FIELD.worker) == asked.worker then lost[#lost + 1] = id end
  end
  return lost
end

local function without_lock(queue, ids)
  local locks, lost = {}, {}
  for i, id in ipairs(ids) do locks[i] = queue.base .. id .. KEY.lock end
  for i, lock in ipairs(redis.call("MGET", unpack(locks))) do
    if not lock then lost[#lost + 1] = ids[i] end
  end
  return lost
end

-- Newest first, as `active` stands: each goes to the head of its line, and so the old order stands again.
local function lost_ids(queue)
  local lost, running = {}, redis.call("LLEN", queue.active)
  for first = 0, running - 1, AT_ONCE do
    local ids = redis.call("LRANGE", queue.active, first, first + AT_ONCE - 1)
    for _, id in ipairs((asked.worker and of_worker or without_lock)(queue, ids)) do lost[#lost + 1] = id end
  end
  return lost
end

local function take_back(queue, id)
  if not leave_active(queue, id) then return end
  local job = read_job(queue, id)
  if job.group then groups().end_in_group(queue, job.group, id) end
  if redis.call("EXISTS", queue.base .. id) == 0 then return end
  if releasing().release(queue, id, job, asked.crash, asked.limits, asked.now) then
    recovered[#recovered + 1] = { queue.base, id }
  elseif job.cancelling then
    cancelled[#cancelled + 1] = { queue.base, id }
  end
end

-- Also where no worker claims. A job that BullMQ removed is passed over here, and its entry with it.
local function end_late(queue)
  local late = redis.call("ZRANGEBYSCORE", queue.own .. KEY.start_by, "-inf", "(" .. asked.now, "LIMIT", 0, AT_ONCE)
  for _, id in ipairs(late) do
    redis.call("ZREM", queue.own .. KEY.start_by, id)
    local found = redis.call("HMGET", queue.base .. id, FIELD.start_by, FIELD.started)
    local is_late = found[1] and not found[2] and tonumber(found[1]) < asked.now
    local state = is_late and state_of(queue, id)
    if state and state ~= "active" and state ~= "completed" and state ~= "failed" then
      leave_place(queue, id, state)
      failing().expire(queue, id, state, asked.now)
    end
  end
end

local function active_ids(queue)
  local active = {}
  for first = 0, redis.call("LLEN", queue.active) - 1, AT_ONCE do
    for _, id in ipairs(redis.call("LRANGE", queue.active, first, first + AT_ONCE - 1)) do active[id] = true end
  end
  return active
end

-- BullMQ may have ended or removed an active job: its group has its place back.
local function reconcile_groups(queue)
  local busy = redis.call("SMEMBERS", queue.own .. KEY.busy_groups)
  local active = #busy > 0 and active_ids(queue)
  for _, name in ipairs(busy) do
    for _, id in ipairs(redis.call("SMEMBERS", queue.own .. KEY.group_active .. name)) do
      if not active[id] then groups().end_in_group(queue, name, id) end
    end
  end
end

-- Of jobs that BullMQ removed. A portion at a time, and each job at most once in that time.
local function sweep_steps(queue)
  local known = redis.call("ZRANGEBYSCORE", queue.own .. KEY.with_steps, "-inf", asked.now - SWEEP_EVERY_MS,
    "LIMIT", 0, SWEEP_AT_ONCE)
  for _, id in ipairs(known) do
    if redis.call("EXISTS", queue.base .. id) == 0 then
      forgetting().delete_steps(queue, id)
    else
      redis.call("ZADD", queue.own .. KEY.with_steps, "XX", asked.now, id)
    end
  end
end

-- What else is to be looked after now and then.
local function sweep(queue)
  end_late(queue)
  reconcile_groups(queue)
  sweep_steps(queue)
  redis.call("ZREMRANGEBYSCORE", queue.own .. KEY.remembered_ids, "-inf", asked.now)
  -- A queue that was obliterated left its log to end in time; BullMQ may have begun it anew.
  if exists(queue) then redis.call("PERSIST", queue.events) end
end

for _, queue in ipairs(queues) do
  for _, id in ipairs(lost_ids(queue)) do take_back(queue, id) end
  if not asked.worker then sweep(queue) end
end
close_batch(queues, asked.now)
local ended = failed_here(queues)
for _, ref in ipairs(cancelled) do ended[#ended + 1] = ref end
return { recovered, ended }

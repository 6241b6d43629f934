--[[ Where an unfinished job stands: in line, in the line of its priority, or until a time. ]]
local PRIORITY_STEP = 4294967296

-- `place` is "end" or "head"; workers take from the tail of `wait`.
local function put_in_line(queue, id, priority, place)
  queue.has_work = true
  if priority > 0 then
    local turn = 0
    if place == "end" then turn = redis.call("INCR", queue.priority_counter) % PRIORITY_STEP end
    redis.call("ZADD", queue.prioritized, priority * PRIORITY_STEP + turn, id)
  elseif place == "head" then
    redis.call("RPUSH", queue.wait, id)
  else
    redis.call("LPUSH", queue.wait, id)
  end
end

-- Jobs due in the same millisecond keep the order in which they came.
local function put_until(queue, id, due)
  queue.has_delayed = true
  local first = due * DELAY_STEP
  local last = first + DELAY_STEP - 1
  local found = redis.call("ZREVRANGEBYSCORE", queue.delayed, last, first, "WITHSCORES", "LIMIT", 0, 1)
  local score = found[2] and math.min(tonumber(found[2]) + 1, last) or first
  redis.call("ZADD", queue.delayed, score, id)
end

-- Each job of a claim has a token of its own: the claim's, and the job's place in it.
local function lease_token(claim_token, place)
  return claim_token .. ":" .. place
end

-- Whether a lease still stands. One that ran out does until somebody took the job away: then it is
-- either no longer active, or active again under a greater epoch.
local function is_held(queue, id, token, epoch)
  local job_key = queue.base .. id
  local lock = redis.call("GET", job_key .. KEY.lock)
  if lock then return lock == token end
  local current = tonumber(redis.call("HGET", job_key, FIELD.epoch) or nil)
  return current == epoch and redis.call("LPOS", queue.active, id) ~= false
end

-- Take a job out of `active` and end its lease; false if it was not there, and then nothing changed.
local function leave_active(queue, id)
  if redis.call("LREM", queue.active, -1, id) == 0 then return false end
  redis.call("DEL", queue.base .. id .. KEY.lock)
  queue.unstalled[#queue.unstalled + 1] = id
  return true
end

-- Who left `active` is no longer suspected of having stalled.
local function clear_suspicion(queues)
  for _, queue in ipairs(queues) do
    for first = 1, #queue.unstalled, 1000 do
      local last = math.min(first + 999, #queue.unstalled)
      redis.call("SREM", queue.stalled, unpack(queue.unstalled, first, last))
    end
  end
end

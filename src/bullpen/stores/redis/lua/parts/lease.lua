--[[ Leases: who holds an active job, and how it leaves `active`. ]]

-- A claim's token is that of its request, and the time at which the server carries it out.
local function claim_token(request_token, now)
  return request_token .. ":" .. text(now)
end

-- Each job of a claim has a token of its own: the claim's, the number of its queue, and this before its id.
local function token_prefix(token, number)
  return token .. ":" .. text(number) .. ":"
end

-- Whether a lease still stands. One that ran out does until somebody took the job away: then it is no
-- longer active, or active again since another time (another epoch, or another job under the same id).
-- `lock` is what its lock says, if known.
local function is_held(queue, id, token, epoch, lock)
  local job_key = queue.base .. id
  if lock == nil then lock = redis.call("GET", job_key .. KEY.lock) end
  if lock then return lock == token end
  local current = redis.call("HMGET", job_key, FIELD.epoch, FIELD.started)
  return tonumber(current[1] or nil) == epoch and current[2] == string.match(token, "^%w+:%d+:(%d+):")
    and redis.call("LPOS", queue.active, id) ~= false
end

-- Take a job out of `active` and end its lease; false if it was not there, and then nothing changed.
-- To be followed by `delete_locks`, before anybody claims.
local function leave_active(queue, id)
  if redis.call("LREM", queue.active, "-1", id) == 0 then return false end
  queue.freed[#queue.freed + 1] = queue.base .. id .. KEY.lock
  queue.unstalled[#queue.unstalled + 1] = id
  return true
end

local function delete_locks(queues)
  for _, queue in ipairs(queues) do
    in_chunks(queue.freed, function(...) redis.call("DEL", ...) end)
    queue.freed = {}
  end
end

-- Who left `active` is no longer suspected of having stalled.
local function clear_suspicion(queues)
  for _, queue in ipairs(queues) do
    in_chunks(queue.unstalled, function(...) redis.call("SREM", queue.stalled, ...) end)
  end
end

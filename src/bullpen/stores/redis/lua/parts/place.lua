--[[ Where a job stands, whoever put it there. ]]

-- Its state, or nil if it stands nowhere or in line; of a delayed one also the time at which it is due.
local function state_out_of_line(queue, id)
  if redis.call("ZSCORE", queue.completed, id) then return "completed" end
  if redis.call("ZSCORE", queue.failed, id) then return "failed" end
  local score = redis.call("ZSCORE", queue.delayed, id)
  if score then return "delayed", math.floor(tonumber(score) / DELAY_STEP) end
  if redis.call("ZSCORE", queue.prioritized, id) then return "prioritized" end
  if redis.call("ZSCORE", queue.waiting_children, id) then return "waiting-children" end
  local state = groups().state_in_group(queue, id)
  if state then return state end
  if redis.call("LPOS", queue.active, id) then return "active" end
  return nil
end

local function state_of(queue, id)
  local state, due = state_out_of_line(queue, id)
  if state then return state, due end
  if redis.call("LPOS", queue.wait, id) or redis.call("LPOS", queue.paused, id) then return "waiting" end
  return nil
end

-- The state of a job that is there: an entry without a record is none, and neither is a lost record.
local function state_of_job(queue, id)
  if redis.call("EXISTS", queue.base .. id) == 0 then return nil end
  return state_of(queue, id)
end

-- Take a job that is not active out of its place.
local function leave_place(queue, id, state)
  local may_be_grouped = state == "waiting" or state == "prioritized"
  if may_be_grouped and groups().leave_group_line(queue, id) then return end
  if state ~= "waiting" then
    redis.call("ZREM", queue[state] or queue.waiting_children, id)
  elseif redis.call("LREM", queue.wait, 1, id) == 0 then
    redis.call("LREM", queue.paused, 1, id)
  end
end

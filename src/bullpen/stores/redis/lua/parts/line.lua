--[[ Where an unfinished job stands: in line, in the line of its priority or of its group, or until a time. ]]
local PRIORITY_STEP = 4294967296
local HEAD_ROOM = 1048576 -- how many may be put before the first of a priority

-- Before all others of the priority, also before those that were put there earlier.
local function head_score(line, priority)
  local first = priority * PRIORITY_STEP
  local found = redis.call("ZRANGE", line, first - HEAD_ROOM, first + PRIORITY_STEP - 1, "BYSCORE",
    "LIMIT", 0, 1, "WITHSCORES")
  return found[2] and math.min(first, tonumber(found[2]) - 1) or first
end

local function end_score(counter, priority)
  return priority * PRIORITY_STEP + redis.call("INCR", counter) % PRIORITY_STEP
end

local function put_in_group(queue, id, name, priority, place)
  local group, grouped = groups().touch_group(queue, name), queue.own .. KEY.grouped
  local score = place == "head" and head_score(grouped, priority)
    or end_score(queue.own .. KEY.group_places, priority)
  redis.call("ZADD", grouped, score, id)
  group.waiting = group.waiting + redis.call("ZADD", group.line, score, id)
end

-- `place` is "end" or "head"; workers take from the tail of `wait`. To be followed by `announce`.
local function put_in_line(queue, id, priority, place, group)
  if group then
    put_in_group(queue, id, group, priority, place)
    return
  end
  queue.has_work = true
  if priority > 0 then
    local score = place == "head" and head_score(queue.prioritized, priority)
      or end_score(queue.priority_counter, priority)
    redis.call("ZADD", queue.prioritized, score, id)
  elseif place == "head" then
    redis.call("RPUSH", line_of(queue), id)
  else
    queue.joined[#queue.joined + 1] = id
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

-- Put a delayed job that left its place into its line; an entry whose record is lost is no job.
local function make_runnable(queue, id, now)
  local job_key = queue.base .. id
  local found = redis.call("HMGET", job_key, FIELD.priority, FIELD.tenant, FIELD.name, FIELD.group)
  if not found[1] and not found[3] then return end
  redis.call("HSET", job_key, FIELD.delay, "0", FIELD.entered, text(now))
  put_in_line(queue, id, tonumber(found[1] or nil) or 0, "end", found[4] or nil)
  emit(queue, found[2] or nil, "waiting", "jobId", id, "prev", "delayed")
end

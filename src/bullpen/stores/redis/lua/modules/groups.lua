--[[ Groups: who of them stands in the ring, wakes at a time, or neither.

  A job that waits in a group stands in two sorted sets with one score: the line of its group, and `grouped`,
  by which the jobs of all groups are counted, found and listed. Whoever moves a job touches its group; when
  the script is through (`announce`), each touched group is put where it belongs:

      has jobs ─┬─ paused, or at its cap ──▶ nowhere, until that ends
                ├─ its rate is used up, or it was closed ──▶ `ring_closed`, by the time at which that ends
                └─ else ──▶ `ring`, by its virtual time; scheduling/turns.py tells of that

  Out of the ring a group keeps its virtual time in `ring_rest`, as long as it is ahead of the present one. ]]
local FIRST_PRIORITIZED = 4294967296 - 1048576 -- jobs without a priority have lower scores; line.lua does the sums
local STATE_MARGIN_MS = 60000 -- what is over is kept for that much longer, since clocks differ

local function grouped_key(queue)
  return queue.own .. KEY.grouped
end

local function group_defaults(queue)
  if not queue.group_defaults then
    queue.group_defaults = redis.call("HMGET", queue.own .. KEY.group_default, FIELD.weight, FIELD.concurrency,
      FIELD.rate_max, FIELD.rate_ms, FIELD.max_size)
  end
  return queue.group_defaults
end

-- The group as it stands, read once in a script; its limits are its own, or the default's.
local function open_group(queue, name)
  queue.groups = queue.groups or {}
  local known = queue.groups[name]
  if known then return known end
  local own, default = queue.own, group_defaults(queue)
  local said = redis.call("HMGET", own .. KEY.group_settings .. name, FIELD.weight, FIELD.concurrency,
    FIELD.rate_max, FIELD.rate_ms, FIELD.max_size, FIELD.paused)
  local state = redis.call("HMGET", own .. KEY.group_state .. name, FIELD.window_until, FIELD.window_starts,
    FIELD.closed_until)
  local rate = said[3] and said or default
  local line, running = own .. KEY.group_line .. name, own .. KEY.group_active .. name
  local group = {
    name = name,
    line = line,
    running = running,
    said = said,
    weight = tonumber(said[1] or default[1] or nil) or 1,
    concurrency = tonumber(said[2] or default[2] or nil),
    rate_max = tonumber(rate[3] or nil),
    rate_ms = tonumber(rate[4] or nil),
    max_size = tonumber(said[5] or default[5] or nil),
    is_paused = said[6] ~= false,
    window_until = tonumber(state[1] or nil) or 0,
    window_starts = tonumber(state[2] or nil) or 0,
    closed_until = tonumber(state[3] or nil) or 0,
    waiting = redis.call("ZCARD", line),
    active = redis.call("SCARD", running),
    time = tonumber(redis.call("ZSCORE", own .. KEY.ring, name) or nil), -- nil: not in the ring
    wakes = tonumber(redis.call("ZSCORE", own .. KEY.ring_closed, name) or nil),
    is_listed = redis.call("ZSCORE", own .. KEY.groups, name) ~= false,
  }
  queue.groups[name] = group
  return group
end

-- The time of the last turn.
local function ring_present(queue)
  if not queue.present then
    queue.present = tonumber(redis.call("GET", queue.own .. KEY.ring_present) or nil) or 0
  end
  return queue.present
end

local function enter_ring(queue, group)
  if group.time then return end
  local rest = queue.own .. KEY.ring_rest
  local own_time = tonumber(redis.call("ZSCORE", rest, group.name) or nil) or 0
  group.time = math.max(own_time, ring_present(queue))
  redis.call("ZADD", queue.own .. KEY.ring, group.time, group.name)
  if own_time > 0 then redis.call("ZREM", rest, group.name) end
end

local function leave_ring(queue, group)
  if not group.time then return end
  redis.call("ZREM", queue.own .. KEY.ring, group.name)
  if group.time > ring_present(queue) then
    redis.call("ZADD", queue.own .. KEY.ring_rest, group.time, group.name)
  end
  group.time = nil
end

local function set_wake(queue, group, wakes)
  if wakes == group.wakes then return end
  if wakes then
    redis.call("ZADD", queue.own .. KEY.ring_closed, wakes, group.name)
  else
    redis.call("ZREM", queue.own .. KEY.ring_closed, group.name)
  end
  group.wakes = wakes
end

-- Listed are groups with jobs, and with something of their own.
local function list_group(queue, group)
  local is_listed = group.waiting > 0 or group.active > 0
    or redis.call("EXISTS", queue.own .. KEY.group_settings .. group.name) == 1
  if is_listed == group.is_listed then return end
  if is_listed then
    redis.call("ZADD", queue.own .. KEY.groups, "0", group.name)
  else
    redis.call("ZREM", queue.own .. KEY.groups, group.name)
  end
  group.is_listed = is_listed
end

-- The time at which a group may give again, 0 if it may now; a time that is over is seen by the next claim.
local function closed_until(group)
  local is_used_up = group.rate_max ~= nil and group.window_starts >= group.rate_max
  return math.max(group.closed_until, is_used_up and group.window_until or 0)
end

local function stand(queue, group)
  local may_run = group.waiting > 0 and not group.is_paused
  local wakes = may_run and closed_until(group) or 0
  local is_full = group.concurrency ~= nil and group.active >= group.concurrency
  if may_run and wakes == 0 and not is_full then enter_ring(queue, group) else leave_ring(queue, group) end
  set_wake(queue, group, wakes > 0 and wakes or nil)
  if group.time or group.wakes then queue.has_work = true end
end

local function save_state(queue, group)
  local state = queue.own .. KEY.group_state .. group.name
  redis.call("HSET", state, FIELD.window_until, text(group.window_until), FIELD.window_starts,
    text(group.window_starts), FIELD.closed_until, text(group.closed_until))
  redis.call("PEXPIRE", state, group.keep_ms)
  group.keep_ms = nil
end

-- Once nobody waits, whoever comes next starts anew beside all others.
local function end_round(queue)
  if redis.call("EXISTS", grouped_key(queue)) == 1 then return end
  redis.call("DEL", queue.own .. KEY.ring_present, queue.own .. KEY.ring_rest, queue.own .. KEY.group_places)
  queue.present = 0
end

local function stand_touched(queue)
  local touched = queue.touched
  if not touched then return end
  queue.touched = nil
  local is_one_empty = false
  for name in pairs(touched) do
    local group = open_group(queue, name)
    stand(queue, group)
    list_group(queue, group)
    if group.keep_ms then save_state(queue, group) end
    is_one_empty = is_one_empty or group.waiting == 0
  end
  if is_one_empty then end_round(queue) end
end

-- The group, which is to be looked at again by `announce`.
local function touch_group(queue, name)
  queue.touched = queue.touched or {}
  queue.touched[name] = true
  queue.stand_touched = stand_touched
  return open_group(queue, name)
end

local function remember_state(group, now)
  group.keep_ms = math.max(group.window_until, group.closed_until) - now + STATE_MARGIN_MS
end

local function close_group(queue, name, now, delay)
  local group = touch_group(queue, name)
  group.closed_until = math.max(group.closed_until, now + delay)
  remember_state(group, now)
end

-- Take a job out of the line of its group; false if it waits in none.
local function leave_group_line(queue, id)
  if redis.call("ZREM", grouped_key(queue), id) == 0 then return false end
  local name = redis.call("HGET", queue.base .. id, FIELD.group)
  if name then
    local group = touch_group(queue, name)
    group.waiting = group.waiting - redis.call("ZREM", group.line, id)
  end
  return true
end

local function start_in_group(queue, group, id)
  group.active = group.active + redis.call("SADD", group.running, id)
  if group.active == 1 then redis.call("SADD", queue.own .. KEY.busy_groups, group.name) end
end

-- A job of the group is no longer active.
local function end_in_group(queue, name, id)
  local group = touch_group(queue, name)
  group.active = group.active - redis.call("SREM", group.running, id)
  if group.active == 0 then redis.call("SREM", queue.own .. KEY.busy_groups, name) end
end

-- The state of a job that waits in a group, or nil.
local function state_in_group(queue, id)
  local score = redis.call("ZSCORE", grouped_key(queue), id)
  if not score then return nil end
  return tonumber(score) < FIRST_PRIORITIZED and "waiting" or "prioritized"
end

-- How many wait in groups, without a priority and with one.
local function count_grouped(queue)
  local grouped = grouped_key(queue)
  local all = redis.call("ZCARD", grouped)
  local plain = all > 0 and redis.call("ZCOUNT", grouped, "-inf", "(" .. FIRST_PRIORITIZED) or 0
  return plain, all - plain
end

return {
  grouped_key = grouped_key,
  group_defaults = group_defaults,
  open_group = open_group,
  closed_until = closed_until,
  stand = stand,
  stand_touched = stand_touched,
  touch_group = touch_group,
  remember_state = remember_state,
  close_group = close_group,
  leave_group_line = leave_group_line,
  start_in_group = start_in_group,
  end_in_group = end_in_group,
  state_in_group = state_in_group,
  count_grouped = count_grouped,
}

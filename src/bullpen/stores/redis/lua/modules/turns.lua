--[[ Claiming from groups: they take turns. ]]

-- The end of a closing or of a window: the group begins anew.
local function reopen_due(queue, now)
  local due = redis.call("ZRANGEBYSCORE", queue.own .. KEY.ring_closed, "-inf", now, "LIMIT", "0", PROMOTE_LIMIT)
  for _, name in ipairs(due) do
    local group = groups().touch_group(queue, name)
    group.window_until, group.window_starts, group.closed_until = 0, 0, 0
    redis.call("DEL", queue.own .. KEY.group_state .. name)
  end
end

local function count_start_in_group(group, now)
  if not group.rate_max or not group.rate_ms then return end
  if group.window_until <= now then group.window_until, group.window_starts = now + group.rate_ms, 0 end
  group.window_starts = group.window_starts + 1
  groups().remember_state(group, now)
end

local function pop_from_group(queue, group)
  local id = redis.call("ZPOPMIN", group.line)[1]
  if not id then return nil end
  redis.call("ZREM", groups().grouped_key(queue), id)
  group.waiting = group.waiting - 1
  redis.call("LPUSH", queue.active, id)
  return id
end

-- The group whose turn it is gives its first job. Out of turn the group moves on, and the time of the others stands still.
-- Returns the job, or nil if the entry was no runnable job and is gone.
local function take_turn(queue, name, lease, now, is_out_of_turn)
  local group = groups().touch_group(queue, name)
  local id = pop_from_group(queue, group)
  local job = id and activate(queue, id, lease, now, name)
  if not id then group.waiting = 0 end
  if job then
    groups().start_in_group(queue, group, id)
    if not is_out_of_turn then queue.present, queue.has_turned = group.time, true end
    group.time = group.time + 1 / group.weight
    redis.call("ZADD", queue.own .. KEY.ring, group.time, name)
    count_start_in_group(group, now)
  end
  groups().stand(queue, group)
  return job
end

-- The group whose turn it is; `only` at any time, if it may give.
local function next_in_ring(ring, only)
  if only then return redis.call("ZSCORE", ring, only) and only or nil end
  return redis.call("ZRANGE", ring, 0, 0)[1]
end

-- Let the groups take turns until so many are claimed; or `only` one of them. Returns when to look again, if a group
-- wakes.
local function take_turns(queue, claimed, free, lease, now, only)
  local ring, skipped = queue.own .. KEY.ring, 0
  reopen_due(queue, now)
  groups().stand_touched(queue)
  while #claimed < free and skipped < SKIP_LIMIT do
    local name = next_in_ring(ring, only)
    if not name then break end
    local job = take_turn(queue, name, lease, now, only ~= nil)
    if job then
      claimed[#claimed + 1] = job
    else
      skipped = skipped + 1
      groups().stand_touched(queue) -- the end of a child may have put its parent into another group
    end
  end
  if queue.has_turned then
    redis.call("SET", queue.own .. KEY.ring_present, string.format("%.17g", queue.present))
    redis.call("ZREMRANGEBYSCORE", queue.own .. KEY.ring_rest, "-inf", queue.present)
  end
  groups().stand_touched(queue)
  return tonumber(redis.call("ZRANGE", queue.own .. KEY.ring_closed, 0, 0, "WITHSCORES")[2] or nil)
end

return {
  take_turns = take_turns,
}

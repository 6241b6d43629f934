--[[ The line as one list: `wait`, and behind its tail what an older BullMQ put aside while paused. ]]

local function reversed(ids)
  local turned = {}
  for i = #ids, 1, -1 do turned[#turned + 1] = ids[i] end
  return turned
end

-- From `first` to `last` of a list counted from its tail, which is where workers take from.
local function tail_range(list, first, last)
  return reversed(redis.call("LRANGE", list, -(last + 1), -(first + 1)))
end

-- From `first` to `last` in the order in which they run, both counted from 0.
local function line_range(queue, first, last)
  local aside = redis.call("LLEN", queue.paused)
  local ids = first < aside and tail_range(queue.paused, first, last) or {}
  if last >= aside then
    for _, id in ipairs(tail_range(queue.wait, math.max(first - aside, 0), last - aside)) do ids[#ids + 1] = id end
  end
  return ids
end

-- The place of a job in that order, or nil.
local function line_place(queue, id)
  local aside = redis.call("LLEN", queue.paused)
  local from_head = aside > 0 and redis.call("LPOS", queue.paused, id)
  if from_head then return aside - 1 - from_head end
  from_head = redis.call("LPOS", queue.wait, id)
  return from_head and aside + redis.call("LLEN", queue.wait) - 1 - from_head or nil
end

-- The whole of a state as one order: first what stands in BullMQ's own places, then what waits in groups.
local function size_of_own(queue, state)
  if state == "waiting" then return redis.call("LLEN", queue.wait) + redis.call("LLEN", queue.paused) end
  if state == "active" then return redis.call("LLEN", queue.active) end
  return redis.call("ZCARD", queue[state] or queue.waiting_children)
end

-- How many of the state wait in groups, and how many stand there before them.
local function grouped_part(queue, state)
  local plain, prioritized = groups().count_grouped(queue)
  if state == "waiting" then return plain, 0 end
  if state == "prioritized" then return prioritized, plain end
  return 0, 0
end

local function with_scores(flat)
  local found = {}
  for i = 1, #flat, 2 do found[#found + 1] = { flat[i], flat[i + 1] } end
  return found
end

local function own_entries(queue, state, first, last)
  if state ~= "waiting" and state ~= "active" then
    return with_scores(redis.call("ZRANGE", queue[state] or queue.waiting_children, first, last, "WITHSCORES"))
  end
  local found = {}
  local ids = state == "active" and tail_range(queue.active, first, last) or line_range(queue, first, last)
  for i, id in ipairs(ids) do found[i] = { id, "" } end
  return found
end

-- As {id, score or ""} from `first` to `last`; of those in groups the third is "grouped".
local function state_range(queue, state, first, last)
  local found = own_entries(queue, state, first, last)
  local grouped, before = grouped_part(queue, state)
  if grouped == 0 then return found end
  local size = size_of_own(queue, state)
  if last < size then return found end
  local from, to = math.max(first - size, 0), math.min(last - size, grouped - 1)
  if to < from then return found end
  local flat = redis.call("ZRANGE", groups().grouped_key(queue), before + from, before + to, "WITHSCORES")
  for _, entry in ipairs(with_scores(flat)) do
    entry[3] = "grouped"
    found[#found + 1] = entry
  end
  return found
end

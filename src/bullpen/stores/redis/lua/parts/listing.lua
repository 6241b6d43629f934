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

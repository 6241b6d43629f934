--[[ jobs: a page of one state, in the order in which its jobs run or did finish, or against it.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the state  4 how many  5 "newest first" | ""
       6 "grouped" if the last one that was seen waits in a group, or ""  7 its score
       8… the ids of the last ones, the very last first; none at the start
  Returns "missing" if there never was such a queue, else {{id, score or "", "grouped" or "", record fields}, …}
          and one more than asked, if there are more
  Emits nothing ]]
local queue, state, limit = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])
local newest_first, is_grouped, after_score, seen = ARGV[5] ~= "", ARGV[6] ~= "", ARGV[7], { unpack(ARGV, 8) }

if not exists(queue) then return "missing" end
local is_list = not is_grouped and (state == "waiting" or state == "active")
local zset = is_grouped and groups().grouped_key(queue) or queue[state] or queue.waiting_children
local own_size = size_of_own(queue, state)
local grouped_size, grouped_before = grouped_part(queue, state)
local size = own_size + grouped_size
-- What stands before the first of `zset` that is of this page's order.
local offset = is_grouped and own_size - grouped_before or 0

-- How many of a sorted set stand before the place of an entry that is gone.
local function stood_before()
  local before = redis.call("ZCOUNT", zset, "-inf", "(" .. after_score)
  for _, other in ipairs(redis.call("ZRANGEBYSCORE", zset, after_score, after_score)) do
    if other < seen[1] then before = before + 1 end
  end
  return before + offset
end

local function place_in_list(id)
  if state == "waiting" then return line_place(queue, id) end
  local from_head = redis.call("LPOS", queue.active, id)
  return from_head and redis.call("LLEN", queue.active) - 1 - from_head or nil
end

-- The place of the last entry that was seen and still stands there, or nil.
local function place_of_cursor()
  if is_list then
    for _, id in ipairs(seen) do
      local place = place_in_list(id)
      if place then return place end
    end
    return nil
  end
  local score = tonumber(redis.call("ZSCORE", zset, seen[1]) or nil)
  return score == tonumber(after_score) and redis.call("ZRANK", zset, seen[1]) + offset or nil
end

-- First and last place of the page, in the order in which they run.
local function bounds()
  local count = limit + 1
  if #seen == 0 then
    if newest_first then return size - count, size - 1 end
    return 0, count - 1
  end
  local place = place_of_cursor()
  if place then
    if newest_first then return place - count, place - 1 end
    return place + 1, place + count
  end
  -- A job that left the line was mostly taken, and with it all before it: what is left was not seen yet.
  local before = is_list and (newest_first and own_size or 0) or stood_before()
  if newest_first then return before - count, before - 1 end
  return before, before + count - 1
end

local function entries(first, last)
  if last < 0 then return {} end
  local found = state_range(queue, state, math.max(first, 0), last)
  return newest_first and reversed(found) or found
end

local page = entries(bounds())
for _, entry in ipairs(page) do
  entry[3] = entry[3] or ""
  entry[4] = redis.call("HGETALL", queue.base .. entry[1])
end
return page

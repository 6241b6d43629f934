--[[ set_group_default: the limits of each group where its own say nothing. Groups are looked at again, a
  portion at a time.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 "first", or the last group that was looked at, after "("
       4… field, value, … of the limits
  Returns the last group of this portion, or "" if it was the last one
  Emits nothing ]]
local PORTION = 1000
local queue, after, limits = open_queue(ARGV[1], ARGV[2]), ARGV[3], { unpack(ARGV, 4) }
local default = queue.own .. KEY.group_default

if after == "first" then
  max_events(queue)
  redis.call("DEL", default)
  if #limits > 0 then redis.call("HSET", default, unpack(limits)) end
  after = "-"
end
local names = redis.call("ZRANGEBYLEX", queue.own .. KEY.groups, after, "+", "LIMIT", 0, PORTION)
for _, name in ipairs(names) do groups().touch_group(queue, name) end
announce({ queue })
return #names == PORTION and names[PORTION] or ""

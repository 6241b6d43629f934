--[[ queues: the names on our list that are still queues; Node may have obliterated some.
  KEYS 1 the list
  ARGV 1 what keys of a queue begin with, before its name  2 what is there while it was completed not long ago
  Returns {"complete" | "due", {name, …}}
  Emits nothing ]]
local list, before_names, searched = KEYS[1], ARGV[1], ARGV[2]

local names = {}
for _, name in ipairs(redis.call("SMEMBERS", list)) do
  if redis.call("EXISTS", before_names .. name .. ":" .. KEY.meta) == 1 then names[#names + 1] = name end
end
return { redis.call("EXISTS", searched) == 1 and "complete" or "due", names }

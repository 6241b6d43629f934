--[[ oldest: since when the next runnable job could have run.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
  Returns "missing" if there never was such a queue, "" if nothing is runnable, else the time in ms as text
  Emits nothing ]]
local queue = open_queue(ARGV[1], ARGV[2])

if not exists(queue) then return "missing" end
local id = line_range(queue, 0, 0)[1] or redis.call("ZRANGE", queue.prioritized, 0, 0)[1]
  or redis.call("ZRANGE", groups().grouped_key(queue), 0, 0)[1]
if not id then return "" end
local found = redis.call("HMGET", queue.base .. id, FIELD.entered, FIELD.added)
return found[1] or found[2] or ""

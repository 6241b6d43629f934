--[[ pause: give out no more jobs of a queue. Jobs stay where they are, unless BullMQ 5 made the queue.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
  Returns "paused" | "unchanged"
  Emits paused ]]
local queue = open_queue(ARGV[1], ARGV[2])

if settings(queue).is_paused then return "unchanged" end
redis.call("HSET", queue.meta, FIELD.paused, 1)
redis.call("DEL", queue.marker)
-- What stands there already is older: it stays first in line.
if queue.is_v5 then move_list(queue.wait, queue.paused, "LEFT") end
emit(queue, nil, "paused")
return "paused"

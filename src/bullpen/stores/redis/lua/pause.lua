--[[ pause: give out no more jobs of a queue. Jobs stay where they are.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
  Returns "paused" | "unchanged"
  Emits paused ]]
local meta_key, queue = KEYS[1], open_queue(ARGV[1], ARGV[2])

if redis.call("HEXISTS", meta_key, FIELD.paused) == 1 then return "unchanged" end
redis.call("HSET", meta_key, FIELD.paused, 1)
redis.call("DEL", queue.marker)
emit(queue, nil, "paused")
return "paused"

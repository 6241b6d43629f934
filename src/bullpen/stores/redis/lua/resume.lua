--[[ resume: give out jobs of a queue again.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
  Returns "resumed" | "unchanged" | "missing" if there never was such a queue
  Emits resumed ]]
local CHUNK = 1000
local meta_key, queue = KEYS[1], open_queue(ARGV[1], ARGV[2])

-- An older BullMQ moves waiting jobs here while paused. They are older than what came since: first in line.
local function merge_paused_list()
  if redis.call("EXISTS", queue.wait) == 0 and redis.call("EXISTS", queue.paused) == 1 then
    redis.call("RENAME", queue.paused, queue.wait)
    return
  end
  for _ = 1, math.ceil(redis.call("LLEN", queue.paused) / CHUNK) do
    redis.call("RPUSH", queue.wait, unpack(redis.call("LPOP", queue.paused, CHUNK)))
  end
end

if redis.call("EXISTS", meta_key) == 0 then return "missing" end
if redis.call("HDEL", meta_key, FIELD.paused) == 0 then return "unchanged" end
merge_paused_list()
queue.has_work = redis.call("EXISTS", queue.wait, queue.prioritized) > 0
queue.has_delayed = not queue.has_work
announce({ queue })
emit(queue, nil, "resumed")
return "resumed"

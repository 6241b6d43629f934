--[[ resume: give out jobs of a queue again.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
  Returns "resumed" | "unchanged" | "missing" if there never was such a queue
  Emits resumed ]]
local queue = open_queue(ARGV[1], ARGV[2])

if not exists(queue) then return "missing" end
if redis.call("HDEL", queue.meta, FIELD.paused) == 0 then return "unchanged" end
-- What BullMQ 5 moved aside is older than what came since: first in line.
move_list(queue.paused, queue.wait, "RIGHT")
queue.has_work = redis.call("EXISTS", queue.wait, queue.prioritized, queue.own .. KEY.ring) > 0
queue.has_delayed = not queue.has_work
announce({ queue })
emit(queue, nil, "resumed")
return "resumed"

--[[ limits: what limits a queue as a whole, and until when that holds it.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now
  Returns "missing" if there never was such a queue, else {concurrency or "", rate max or "", rate ms or "",
          closed until ms or ""}
  Emits nothing ]]
local queue, now = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3])

if not exists(queue) then return "missing" end
local held = held_until(queue, now)

return { queue.concurrency or "", queue.rate_max or "", queue.rate_ms or "", held or "" }

--[[ close: start nothing of a queue for a while. The longest of several closings stands.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4 for how many ms
  Returns "done"
  Emits nothing ]]
local queue, now, delay = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

max_events(queue)
if delay > 0 then closing().close_queue(queue, delay, now) end
return "done"

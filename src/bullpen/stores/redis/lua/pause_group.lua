--[[ pause_group: give out no more jobs of a group, or again.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the group  4 "paused" | "" to resume
  Returns "done" | "missing" if it is to resume and there never was such a queue
  Emits nothing ]]
local queue, name, is_paused = open_queue(ARGV[1], ARGV[2]), ARGV[3], ARGV[4] ~= ""
local settings_key = queue.own .. KEY.group_settings .. name

if not is_paused and not exists(queue) then return "missing" end
max_events(queue)
if is_paused then
  redis.call("HSET", settings_key, FIELD.paused, 1)
else
  redis.call("HDEL", settings_key, FIELD.paused)
end
groups().touch_group(queue, name)
announce({ queue })
return "done"

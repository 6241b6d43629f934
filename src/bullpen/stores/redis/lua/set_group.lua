--[[ set_group: what is special of a group; a new window of its rate begins.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the group  4… field, value, … of its limits
  Returns "done"
  Emits nothing ]]
local queue, name, limits = open_queue(ARGV[1], ARGV[2]), ARGV[3], { unpack(ARGV, 4) }
local settings_key = queue.own .. KEY.group_settings .. name

max_events(queue)
redis.call("HDEL", settings_key, FIELD.weight, FIELD.concurrency, FIELD.rate_max, FIELD.rate_ms, FIELD.max_size)
if #limits > 0 then redis.call("HSET", settings_key, unpack(limits)) end
redis.call("HDEL", queue.own .. KEY.group_state .. name, FIELD.window_until, FIELD.window_starts)
groups().touch_group(queue, name)
announce({ queue })
return "done"

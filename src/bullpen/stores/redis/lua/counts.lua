--[[ counts: how many jobs of a queue are in each state.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base
  Returns {} if there never was such a queue, else {waiting, prioritized, delayed, active,
          waiting children, completed, failed, "paused" | "running"}
  Emits nothing ]]
local meta_key, base = KEYS[1], ARGV[1]

if redis.call("EXISTS", meta_key) == 0 then return {} end
local is_paused = redis.call("HEXISTS", meta_key, FIELD.paused) == 1
return {
  redis.call("LLEN", base .. KEY.wait) + redis.call("LLEN", base .. KEY.paused),
  redis.call("ZCARD", base .. KEY.prioritized),
  redis.call("ZCARD", base .. KEY.delayed),
  redis.call("LLEN", base .. KEY.active),
  redis.call("ZCARD", base .. KEY.waiting_children),
  redis.call("ZCARD", base .. KEY.completed),
  redis.call("ZCARD", base .. KEY.failed),
  is_paused and "paused" or "running",
}

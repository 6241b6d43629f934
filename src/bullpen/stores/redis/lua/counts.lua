--[[ counts: how many jobs of a queue are in each state.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys
  Returns {} if there never was such a queue, else {waiting, prioritized, delayed, active,
          waiting children, completed, failed, "paused" | "running"}
  Emits nothing ]]
local queue = open_queue(ARGV[1], ARGV[2])

if not exists(queue) then return {} end
local is_paused = redis.call("HEXISTS", queue.meta, FIELD.paused) == 1
local plain, prioritized = groups().count_grouped(queue)
return {
  redis.call("LLEN", queue.wait) + redis.call("LLEN", queue.paused) + plain,
  redis.call("ZCARD", queue.prioritized) + prioritized,
  redis.call("ZCARD", queue.delayed),
  redis.call("LLEN", queue.active),
  redis.call("ZCARD", queue.waiting_children),
  redis.call("ZCARD", queue.completed),
  redis.call("ZCARD", queue.failed),
  is_paused and "paused" or "running",
}

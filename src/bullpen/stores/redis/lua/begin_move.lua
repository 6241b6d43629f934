--[[ begin_move: make a queue ready to take in another's jobs.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 from where they come  4 the mover's run
       5 the last id that was given there  6 how many more may be given there  7 "paused" | ""
  Returns "begun" | "resumed" | "occupied" if it has jobs that are not from there
  Emits paused, resumed ]]
local meta_key, queue = KEYS[1], open_queue(ARGV[1], ARGV[2])
local origin, run, is_paused = ARGV[3], ARGV[4], ARGV[7] == "paused"
local last_id, margin = tonumber(ARGV[5]), tonumber(ARGV[6])

-- An origin whose ids are out of reach has itself been moved to since: that is another move.
local known = redis.call("HMGET", queue.own .. KEY.move, FIELD.move_origin, FIELD.move_ids_below)
if known[1] == origin and last_id < tonumber(known[2]) then
  redis.call("HSET", queue.own .. KEY.move, FIELD.move_run, run)
  return "resumed"
end
if redis.call("EXISTS", queue.wait, queue.paused, queue.active, queue.prioritized, queue.delayed,
  queue.waiting_children, queue.completed, queue.failed, queue.base .. KEY.schedulers, queue.own .. KEY.grouped) > 0 then
  return "occupied"
end

local given = math.max(tonumber(redis.call("GET", queue.counter) or nil) or 0, last_id + margin)
redis.call("SET", queue.counter, string.format("%.0f", given))
redis.call("DEL", queue.own .. KEY.arrivals, queue.own .. KEY.arrived_signals)
redis.call("HSET", queue.own .. KEY.move, FIELD.move_origin, origin, FIELD.move_run, run,
  FIELD.move_ids_below, string.format("%.0f", given + 1))
max_events(queue)
if is_paused and redis.call("HSET", meta_key, FIELD.paused, 1) == 1 then
  emit(queue, nil, "paused")
elseif not is_paused and redis.call("HDEL", meta_key, FIELD.paused) == 1 then
  emit(queue, nil, "resumed")
end
return "begun"

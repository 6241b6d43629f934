--[[ obliterate: remove a portion of a queue; it stays paused until the last one took the queue itself.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 "force" | ""  4 how many jobs at most  5 now
  Returns "missing" if there never was such a queue, "more", "done", or how many active jobs forbid it
  Emits nothing, since the log goes too; waiting or delayed for parents in other queues ]]
local LOG_MEMORY_MS = 2592000000
local queue, is_forced, limit, now = open_queue(ARGV[1], ARGV[2]), ARGV[3] ~= "", tonumber(ARGV[4]), tonumber(ARGV[5])

if not exists(queue) then return "missing" end
local running = redis.call("LLEN", queue.active)
if running > 0 and not is_forced then return running end

local gone = 0

local function obliterate_job(id)
  local found = redis.call("HMGET", queue.base .. id, FIELD.dedup_id, FIELD.parent_key)
  local dedup_id, parent_key = found[1], found[2]
  if dedup_id then redis.call("DEL", queue.base .. KEY.dedup .. dedup_id, queue.base .. KEY.dedup_next .. dedup_id) end
  redis.call("DEL", queue.base .. id .. KEY.lock)
  forgetting().delete_record(queue, id)
  -- A parent in this queue goes too; if it were released, it would be left behind.
  if parent_key and family().find_relative(queue, parent_key) ~= queue then
    family().child_gone(queue, id, parent_key, now)
  end
  gone = gone + 1
end

for _, list in ipairs({ queue.active, queue.wait, queue.paused }) do
  for _, id in ipairs(redis.call("LPOP", list, limit - gone) or {}) do obliterate_job(id) end
end
for _, set in ipairs({ queue.prioritized, queue.own .. KEY.grouped, queue.delayed, queue.waiting_children, queue.completed, queue.failed }) do
  local popped = redis.call("ZPOPMIN", set, limit - gone)
  for i = 1, #popped, 2 do obliterate_job(popped[i]) end
end
local own = queue.own
local listed = redis.call("ZPOPMIN", own .. KEY.groups, limit - gone)
for i = 1, #listed, 2 do
  local name = listed[i]
  redis.call("DEL", own .. KEY.group_settings .. name, own .. KEY.group_state .. name,
    own .. KEY.group_line .. name, own .. KEY.group_active .. name)
  gone = gone + 1
end
announce({})
if gone == limit then
  redis.call("HSET", queue.meta, FIELD.paused, 1)
  return "more"
end

local schedulers = queue.base .. KEY.schedulers
for _, scheduler in ipairs(redis.call("ZRANGE", schedulers, 0, -1)) do
  redis.call("DEL", queue.base .. KEY.tick .. scheduler)
end
for _, state in ipairs({ "completed", "failed" }) do
  redis.call("DEL", queue.base .. KEY.metrics .. state, queue.base .. KEY.metrics .. state .. KEY.metrics_data)
end
unlist_queue(queue)
redis.call("DEL", schedulers, queue.meta, queue.counter, queue.priority_counter, queue.marker,
  queue.stalled, queue.base .. KEY.stalled_check, queue.limiter, own .. KEY.remembered_ids, own .. KEY.start_by,
  own .. KEY.move, own .. KEY.arrivals, own .. KEY.arrived_signals, own .. KEY.with_steps, own .. KEY.group_default,
  own .. KEY.ring, own .. KEY.ring_rest, own .. KEY.ring_closed, own .. KEY.ring_present, own .. KEY.group_places, own .. KEY.busy_groups)
-- The numbers of the log outlive it for a while: by them its readers see whether they missed anything.
redis.call("XTRIM", queue.events, "MAXLEN", 0)
redis.call("PEXPIRE", queue.events, LOG_MEMORY_MS)
return "done"

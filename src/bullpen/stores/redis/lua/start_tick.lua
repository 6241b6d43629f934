--[[ start_tick: how the schedule of a claimed tick stands, and which other tick of it runs, if none may beside it.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the tick's id  4 its lease's token  5 and epoch  6 the schedule
  Returns {} if the lease is lost or the schedule gone, else {{id, time of its newest tick, fields,
          options of that tick, "pending" | ""}, the running tick or ""}
  Emits nothing ]]
local queue, id, schedule = open_queue(ARGV[1], ARGV[2]), ARGV[3], ARGV[6]
local schedule_key = queue.base .. KEY.tick .. schedule

if not is_held(queue, id, ARGV[4], tonumber(ARGV[5])) then return {} end
local newest = newest_tick(queue, schedule)
if not newest then return {} end

local function is_at_work(other)
  return redis.call("EXISTS", queue.base .. other .. KEY.lock) == 1 and redis.call("LPOS", queue.active, other) ~= false
end

local known = redis.call("HMGET", schedule_key, FIELD.schedule_overlap, FIELD.schedule_running)
local running = known[1] == "skip" and known[2] and known[2] ~= id and is_at_work(known[2]) and known[2] or ""
local tried = tonumber(redis.call("HGET", queue.base .. id, FIELD.attempts_made) or nil) or 0
if running ~= "" then
  if tried == 0 then redis.call("HINCRBY", schedule_key, FIELD.schedule_skipped, 1) end
elseif known[1] == "skip" then
  redis.call("HSET", schedule_key, FIELD.schedule_running, id)
end
local told = tell_schedule(queue, schedule, newest)
return told and { told, running } or {}

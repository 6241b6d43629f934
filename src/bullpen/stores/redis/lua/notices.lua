--[[ notices: which running jobs of a worker are to stop. What is no longer so is dropped.
  KEYS 1 the worker's jobs to stop
  ARGV 1 the worker's name
  Returns {{base, id, token, epoch, reason}, …}
  Emits nothing ]]
local stops_key, worker = KEYS[1], ARGV[1]

local stops = redis.call("HGETALL", stops_key)
local notices = {}
for i = 1, #stops, 2 do
  local job_key, base = stops[i], stops[i + 1]
  local found = redis.call("HMGET", job_key, FIELD.worker, FIELD.cancelling, FIELD.epoch)
  local token = redis.call("GET", job_key .. KEY.lock)
  if found[1] ~= worker or not found[2] then
    redis.call("HDEL", stops_key, job_key)
  elseif token then
    notices[#notices + 1] = { base, string.sub(job_key, #base + 1), token, tonumber(found[3]) or 0, found[2] }
  end
end
return notices

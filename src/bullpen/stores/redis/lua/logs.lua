--[[ logs: a part of a job's log.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 the job's id  3 the first line, from 0  4 how many
  Returns "missing" or {lines, how many there are}
  Emits nothing ]]
local job_key, start, limit = ARGV[1] .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local logs = job_key .. KEY.logs

if redis.call("EXISTS", job_key) == 0 then return "missing" end
local lines = limit > 0 and redis.call("LRANGE", logs, start, start + limit - 1) or {}
return { lines, redis.call("LLEN", logs) }

--[[ add_log: append lines to a job's log, and drop the oldest over its limit.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 the job's id  3… the lines
  Returns "missing" or how many lines are kept
  Emits nothing ]]
local CHUNK = 1000
local DEFAULT_KEEP_LOGS = 1000 -- as job/spec.py has it; a job of ours does not write it
local job_key, lines = ARGV[1] .. ARGV[2], ARGV
local logs = job_key .. KEY.logs

if redis.call("EXISTS", job_key) == 0 then return "missing" end
for first = 3, #lines, CHUNK do
  redis.call("RPUSH", logs, unpack(lines, first, math.min(first + CHUNK - 1, #lines)))
end
local options = read_options(redis.call("HGET", job_key, FIELD.options) or nil)
local limit = tonumber(options[OPTION.keep_logs]) or options[OPTION.own] and DEFAULT_KEEP_LOGS
if limit == 0 then
  redis.call("DEL", logs)
elseif limit then
  redis.call("LTRIM", logs, -limit, -1)
end
return redis.call("LLEN", logs)

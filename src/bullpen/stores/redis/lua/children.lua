--[[ children: a portion of what a parent knows of its children.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 "pending" | "completed" | "ignored" | "failed"
       5 where to go on, "0" at first  6 about how many
  Returns "missing" if there is no such job, else {where to go on or "0", {child's key, result or reason or "", …}}
  Emits nothing ]]
local job_key, kind, cursor, count = ARGV[1] .. ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if redis.call("EXISTS", job_key) == 0 then return "missing" end

local function with_values(keys)
  local flat = {}
  for _, key in ipairs(keys) do
    flat[#flat + 1] = key
    flat[#flat + 1] = ""
  end
  return flat
end

if kind == "pending" then
  local found = redis.call("SSCAN", job_key .. KEY.dependencies, cursor, "COUNT", count)
  return { found[1], with_values(found[2]) }
elseif kind == "failed" then
  local found = redis.call("ZRANGE", job_key .. KEY.unsuccessful_children, cursor, cursor + count - 1)
  return { #found == tonumber(count) and tostring(cursor + count) or "0", with_values(found) }
end
local place = kind == "completed" and KEY.processed_children or KEY.failed_children
return redis.call("HSCAN", job_key .. place, cursor, "COUNT", count)

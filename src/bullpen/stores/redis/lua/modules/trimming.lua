--[[ Retention: the oldest finished jobs go. ]]
local TRIM_LIMIT = 1000 -- records removed by one call at most; the next one goes on

local function forget_all(queue, set, ids, now)
  if #ids == 0 then return end
  for _, id in ipairs(ids) do forgetting().forget_job(queue, id, now) end
  redis.call("ZREM", set, unpack(ids))
end

local function trim(queue, set, keep, now)
  if keep.age_ms then
    local oldest = now - keep.age_ms
    forget_all(queue, set, redis.call("ZRANGEBYSCORE", set, "-inf", oldest, "LIMIT", 0, TRIM_LIMIT), now)
  end
  if keep.count > 0 then
    local surplus = math.min(redis.call("ZCARD", set) - keep.count, TRIM_LIMIT)
    if surplus > 0 then forget_all(queue, set, redis.call("ZRANGE", set, 0, surplus - 1), now) end
  end
end

return {
  trim = trim,
}

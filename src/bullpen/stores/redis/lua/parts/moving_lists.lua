--[[ Moving one list to an end of another: never over it. ]]
local CHUNK = 1000

-- The order stands: at the left the whole list comes before what is there, at the right behind it.
local function move_list(source, target, side)
  if redis.call("EXISTS", source) == 0 then return end
  if redis.call("EXISTS", target) == 0 then
    redis.call("RENAME", source, target)
    return
  end
  local pop, push = "LPOP", "RPUSH"
  if side == "LEFT" then pop, push = "RPOP", "LPUSH" end
  for _ = 1, math.ceil(redis.call("LLEN", source) / CHUNK) do
    redis.call(push, target, unpack(redis.call(pop, source, CHUNK)))
  end
end

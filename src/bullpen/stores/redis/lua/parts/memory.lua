--[[ Requests: the answer to each is remembered for a while, so that whoever lost it may ask again. ]]
local function recall(memory_key)
  local packed = redis.call("GET", memory_key)
  return packed and cmsgpack.unpack(packed)
end

local function remember(memory_key, answer, memory_ms)
  redis.call("SET", memory_key, cmsgpack.pack(answer), "PX", memory_ms)
end

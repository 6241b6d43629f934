--[[ Requests: the answer to each is remembered for a while, so that whoever lost it may ask again. ]]
local function recall(memory_key)
  local packed = redis.call("GET", memory_key)
  return packed and cmsgpack.unpack(packed)
end

local function remember(memory_key, answer, memory_ms)
  redis.call("SET", memory_key, cmsgpack.pack(answer), "PX", string.format("%d", memory_ms))
end

-- What a request claimed is one flat list, for its size: the queue's number, id, epoch, and so on.
local function note_claimed(memory, number, id, epoch)
  local claimed = memory.claimed
  local count = #claimed
  claimed[count + 1], claimed[count + 2], claimed[count + 3] = number, id, epoch
end

local function count_claimed(memory)
  return memory.claimed and #memory.claimed / 3 or 0
end

-- Returns the queue's number, the id and the epoch of the job at that place.
local function claimed_at(memory, place)
  return unpack(memory.claimed, place * 3 - 2, place * 3)
end

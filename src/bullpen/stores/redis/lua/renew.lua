--[[ renew: extend leases from now.
  KEYS 1 the settings of the first queue
  ARGV 1 msgpack {lease_ms, queues = {{base, own}, …}, leases = {{queue, id, token, epoch}, …}}; `queue` counts from 1
  Returns {"held" | "lost" | "cancelling", …} in the order asked
  Emits nothing ]]
local asked = cmsgpack.unpack(ARGV[1])

local queues = open_queues(asked.queues)

local function renew(lease)
  local queue, id = queues[lease.queue], lease.id
  if not is_held(queue, id, lease.token, lease.epoch) then return "lost" end
  redis.call("SET", queue.base .. id .. KEY.lock, lease.token, "PX", asked.lease_ms)
  queue.unstalled[#queue.unstalled + 1] = id
  local is_cancelling = redis.call("HEXISTS", queue.base .. id, FIELD.cancelling) == 1
  return is_cancelling and "cancelling" or "held"
end

local answers = {}
for i, lease in ipairs(asked.leases) do answers[i] = renew(lease) end
clear_suspicion(queues)
return answers

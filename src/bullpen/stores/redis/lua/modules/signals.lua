--[[ Signals that come to a job's mailbox. ]]
local function awaits(queue, id, name)
  local parked = redis.call("ZSCORE", queue.delayed, id) and redis.call("HGET", queue.base .. id, FIELD.parked)
  for _, awaited in ipairs(parked and cjson.decode(parked) or {}) do
    if awaited == name then return true end
  end
  return false
end

local function put_signal(queue, id, name, payload, now)
  redis.call("RPUSH", queue.own .. KEY.mailbox .. id, cmsgpack.pack({ name, payload }))
  steps().note_steps(queue, id, now)
end

-- Put it there, and wake the job if it waits for it: "woken" | "kept". To be followed by `announce`.
local function deliver(queue, id, name, payload, now)
  put_signal(queue, id, name, payload, now)
  if not awaits(queue, id, name) then return "kept" end
  redis.call("ZREM", queue.delayed, id)
  make_runnable(queue, id, now)
  return "woken"
end

return {
  put_signal = put_signal,
  deliver = deliver,
}

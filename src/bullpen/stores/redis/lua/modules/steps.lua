--[[ Durable steps: a job's journal, and the mailbox of signals that it has not asked for yet.
  A journal is a hash: place → state, a space, what is known of the step; place and KEY.value → its value;
  KEY.places → one more than the highest place. A mailbox is a list of {name, payload}, oldest first. ]]

-- By this the sweep finds what is left of jobs that BullMQ removed.
local function note_steps(queue, id, now)
  redis.call("ZADD", queue.own .. KEY.with_steps, "NX", now, id)
end

-- Whether a job is active in this very activation.
local function is_running(queue, id, epoch)
  local job_key = queue.base .. id
  if tonumber(redis.call("HGET", job_key, FIELD.epoch) or nil) ~= epoch then return false end
  return redis.call("EXISTS", job_key .. KEY.lock) == 1 or redis.call("LPOS", queue.active, id) ~= false
end

local function done_at(queue, id, place)
  local found = redis.call("HMGET", queue.own .. KEY.journal .. id, place, place .. KEY.value)
  local head = found[1] and string.match(found[1], "^done (.*)$")
  return head and { head, found[2] or false }
end

-- The entry as it stands afterwards: {head, value or false}.
local function append(queue, id, entry, now)
  local standing = done_at(queue, id, entry.place)
  if standing then return standing end
  local journal = queue.own .. KEY.journal .. id
  redis.call("HSET", journal, entry.place, entry.state .. " " .. entry.head)
  if entry.value then
    redis.call("HSET", journal, entry.place .. KEY.value, entry.value)
  else
    redis.call("HDEL", journal, entry.place .. KEY.value)
  end
  local places = tonumber(redis.call("HGET", journal, KEY.places) or nil) or 0
  if entry.place >= places then redis.call("HSET", journal, KEY.places, entry.place + 1) end
  note_steps(queue, id, now)
  return { entry.head, entry.value or false }
end

-- The oldest signal of one of these names, as it lies there, and its payload.
local function find_signal(queue, id, names)
  if #names == 0 then return nil end
  for _, packed in ipairs(redis.call("LRANGE", queue.own .. KEY.mailbox .. id, 0, -1)) do
    local signal = cmsgpack.unpack(packed)
    for _, name in ipairs(names) do
      if signal[1] == name then return packed, signal[2] end
    end
  end
  return nil
end

return {
  note_steps = note_steps,
  is_running = is_running,
  done_at = done_at,
  append = append,
  find_signal = find_signal,
}

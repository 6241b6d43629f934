--[[ runnable: whether one of these queues has a job to give now, and if not, when to look again.
  A marker that announces nothing is taken away, so that whoever blocks on it next is woken by news only.
  KEYS 1 the settings of the first queue
  ARGV 1 msgpack {now, queues = {{base, own}, …}}
  Returns {"now" | "later" | "unknown", ms of the later time or "", the server's own time in ms, or "" if we may not
  ask for it}
  Emits nothing ]]
local asked = cmsgpack.unpack(ARGV[1])

-- When the first delayed job is due, or the first group wakes.
local function next_time(queue)
  local due = next_due(queue)
  local wakes = tonumber(redis.call("ZRANGE", queue.own .. KEY.ring_closed, 0, 0, "WITHSCORES")[2] or nil)
  return due and wakes and math.min(due, wakes) or due or wakes
end

-- Returns whether a job is there now, and else the time of the next one, if known.
local function look(queue)
  if is_blocked(queue) then return false, nil end
  local time = next_time(queue)
  local has_line = redis.call("EXISTS", queue.wait, queue.prioritized, queue.own .. KEY.ring) > 0
  local has_due = time ~= nil and time <= asked.now
  local held = (has_line or has_due) and held_until(queue, asked.now)
  if held then return false, held end
  return has_line or has_due, time
end

local queues = open_queues(asked.queues)
local earliest
for _, queue in ipairs(queues) do
  local is_runnable, due = look(queue)
  if is_runnable then return { "now", "", "" } end
  if due then earliest = math.min(earliest or due, due) end
end
for _, queue in ipairs(queues) do redis.call("ZREM", queue.marker, "0") end
return { earliest and "later" or "unknown", earliest or "", server_ms() or "" }

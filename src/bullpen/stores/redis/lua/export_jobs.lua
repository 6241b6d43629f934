--[[ export_jobs: the first jobs of a state in its order, with all that belongs to them.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the state  4 how many
  Returns "missing" if there never was such a queue, else {{id, score or "", record fields, log lines,
          {subject, time left ms or -1, fields of the job that is kept} or {}}, …}
  Emits nothing ]]
local queue, state, limit = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])
if not exists(queue) then return "missing" end

local is_finished = state == "completed" or state == "failed"

local function entries()
  local found = {}
  if state == "waiting" then
    for i, id in ipairs(line_range(queue, 0, limit - 1)) do found[i] = { id, "" } end
    return found
  end
  local flat = redis.call("ZRANGE", queue[state] or queue.waiting_children, 0, limit - 1, "WITHSCORES")
  for i = 1, #flat, 2 do found[#found + 1] = { flat[i], flat[i + 1] } end
  return found
end

-- What the job stands for; one that has ended stands for nothing by itself.
local function subject(id)
  local dedup_id = not is_finished and redis.call("HGET", queue.base .. id, FIELD.dedup_id)
  local subject_key = dedup_id and queue.base .. KEY.dedup .. dedup_id
  if not subject_key or redis.call("GET", subject_key) ~= id then return {} end
  return { dedup_id, redis.call("PTTL", subject_key), redis.call("HGETALL", queue.base .. KEY.dedup_next .. dedup_id) }
end

local page = entries()
for _, entry in ipairs(page) do
  local id = entry[1]
  entry[3] = redis.call("HGETALL", queue.base .. id)
  entry[4] = redis.call("LRANGE", queue.base .. id .. KEY.logs, 0, -1)
  entry[5] = subject(id)
end
return page

--[[ export_jobs: the first jobs of a state in its order, with all that belongs to them.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the state  4 how many  5 how many bytes of steps end the page
  Returns "missing" if there never was such a queue, else {{id, score or "", record fields, log lines,
          {subject, time left ms or -1, fields of the job that is kept} or {}, fields of its journal,
          {{a signal's name, its payload}, …}}, …}
  Emits nothing ]]
local queue, state, limit, most = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if not exists(queue) then return "missing" end

local is_finished = state == "completed" or state == "failed"

-- What the job stands for; one that has ended stands for nothing by itself.
local function subject(id)
  local dedup_id = not is_finished and redis.call("HGET", queue.base .. id, FIELD.dedup_id)
  local subject_key = dedup_id and queue.base .. KEY.dedup .. dedup_id
  if not subject_key or redis.call("GET", subject_key) ~= id then return {} end
  return { dedup_id, redis.call("PTTL", subject_key), redis.call("HGETALL", queue.base .. KEY.dedup_next .. dedup_id) }
end

local function signals(id)
  local found = redis.call("LRANGE", queue.own .. KEY.mailbox .. id, 0, -1)
  for i, packed in ipairs(found) do found[i] = cmsgpack.unpack(packed) end
  return found
end

local function size_of(texts)
  local size = 0
  for _, text in ipairs(texts) do size = size + #text end
  return size
end

local page, size = {}, 0
for _, entry in ipairs(state_range(queue, state, 0, limit - 1)) do
  local id = entry[1]
  entry[3] = redis.call("HGETALL", queue.base .. id) -- in place of where it waits
  entry[4] = redis.call("LRANGE", queue.base .. id .. KEY.logs, 0, -1)
  entry[5] = subject(id)
  entry[6] = redis.call("HGETALL", queue.own .. KEY.journal .. id)
  entry[7] = signals(id)
  page[#page + 1] = entry
  size = size + size_of(entry[6])
  if size > most then break end
end
return page

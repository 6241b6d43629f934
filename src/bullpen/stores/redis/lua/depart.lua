--[[ depart: let go of jobs that are on another store by now. Active ones stay, and so does the next tick
  of a schedule. What was kept for when they end is not added: it went with them.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4… the jobs' ids
  Returns "missing" if there never was such a queue, else those ids that are not here any more
  Emits removed ]]
local queue, now, ids = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3]), { unpack(ARGV, 4) }
if not exists(queue) then return "missing" end

-- A subject with a time of its own stays: late producers are still to be throttled.
local function leave_subject(id, dedup_id)
  if not owns_subject(queue, id, dedup_id) then return end
  redis.call("DEL", queue.base .. KEY.dedup_next .. dedup_id)
  local subject_key = queue.base .. KEY.dedup .. dedup_id
  if redis.call("PTTL", subject_key) == -1 then redis.call("DEL", subject_key) end
end

local function let_go(id, state)
  local found = redis.call("HMGET", queue.base .. id, FIELD.dedup_id, FIELD.tenant)
  leave_place(queue, id, state)
  if found[1] and state ~= "completed" and state ~= "failed" then leave_subject(id, found[1]) end
  forget_job(queue, id, now)
  emit(queue, found[2] or nil, "removed", "jobId", id, "prev", state)
end

local gone = {}
for _, id in ipairs(ids) do
  local state = state_of_job(queue, id)
  if state ~= "active" and not (state and is_pending_tick(queue, id)) then
    if state then let_go(id, state) end
    gone[#gone + 1] = id
  end
end
return gone

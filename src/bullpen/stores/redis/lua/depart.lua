--[[ depart: let go of jobs that are on another store by now. Active ones stay, and so does the next tick
  of a schedule, and who was signalled since it was copied. What was kept for when they end is not added: it went with them.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4… the jobs' ids, each with how many signals went along
  Returns "missing" if there never was such a queue, else those ids that are not here any more
  Emits removed ]]
local queue, now, jobs = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3]), { unpack(ARGV, 4) }
if not exists(queue) then return "missing" end

-- A subject with a time of its own stays: late producers are still to be throttled.
local function leave_subject(id, dedup_id)
  if not freeing().owns_subject(queue, id, dedup_id) then return end
  redis.call("DEL", queue.base .. KEY.dedup_next .. dedup_id)
  local subject_key = queue.base .. KEY.dedup .. dedup_id
  if redis.call("PTTL", subject_key) == -1 then redis.call("DEL", subject_key) end
end

local function let_go(id, state)
  local found = redis.call("HMGET", queue.base .. id, FIELD.dedup_id, FIELD.tenant)
  leave_place(queue, id, state)
  if found[1] and state ~= "completed" and state ~= "failed" then leave_subject(id, found[1]) end
  forgetting().forget_job(queue, id, now)
  emit(queue, found[2] or nil, "removed", "jobId", id, "prev", state)
end

local function has_to_stay(id, state, signals)
  if state == "active" or forgetting().is_pending_tick(queue, id) then return true end
  return redis.call("LLEN", queue.own .. KEY.mailbox .. id) > signals
end

local gone = {}
for i = 1, #jobs, 2 do
  local id, signals = jobs[i], tonumber(jobs[i + 1])
  local state = state_of_job(queue, id)
  if not (state and has_to_stay(id, state, signals)) then
    if state then let_go(id, state) end
    gone[#gone + 1] = id
  end
end
announce({ queue })
return gone

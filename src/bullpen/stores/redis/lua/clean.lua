--[[ clean: remove jobs that entered their state long ago, from a portion of that state.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4 the state  5 entered at this time or before
       6 how many at most  7 how many to pass over, in the order in which they run or did finish
  Returns "missing" if there never was such a queue, else {how many went, how many were looked at and stay,
          "end" if the last of the state was looked at, else ""}
  Emits removed for unfinished jobs, and cleaned ]]
local PORTION = 1000
local queue, now, state = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local entered_by, limit, start = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

if not exists(queue) then return "missing" end
local is_finished = state == "completed" or state == "failed"

local function is_old(id, score)
  if is_finished then return tonumber(score) <= entered_by end
  if forgetting().is_pending_tick(queue, id) then return false end
  local found = redis.call("HMGET", queue.base .. id, FIELD.entered, FIELD.added)
  return (tonumber(found[1] or found[2] or nil) or now) <= entered_by
end

local gone, stay, is_end = 0, 0, false
local entries = state_range(queue, state, start, start + PORTION - 1)
for _, entry in ipairs(entries) do
  if gone == limit then break end
  local id, score = entry[1], entry[2]
  if is_old(id, score) then
    leave_place(queue, id, state)
    if is_finished then forgetting().forget_job(queue, id, now) else remove_job(queue, id, state, true, now) end
    gone = gone + 1
  else
    stay = stay + 1
    -- What finished later stands behind.
    is_end = is_end or is_finished
    if is_end then break end
  end
end
if gone > 0 then emit(queue, nil, "cleaned", "count", gone) end
announce({ queue })
return { gone, stay, (is_end or #entries < PORTION) and "end" or "" }

--[[ remove: forget a job that is not active, and its id; and its children with theirs.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 now
  Returns "missing" | "done" | "active", also of a child | "scheduled" for the next tick of a schedule
  Emits removed and, for a job that was kept for later, what add emits; waiting or delayed for a parent ]]
local queue, id, now = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4])

local function child_keys(job_key)
  local keys = redis.call("SMEMBERS", job_key .. KEY.dependencies)
  for _, known in ipairs({
    redis.call("HKEYS", job_key .. KEY.processed_children),
    redis.call("HKEYS", job_key .. KEY.failed_children),
    redis.call("ZRANGE", job_key .. KEY.unsuccessful_children, 0, -1),
  }) do
    for _, key in ipairs(known) do keys[#keys + 1] = key end
  end
  return keys
end

-- The job and all below it that are still there, each parent before its children.
local function family_of(root_state)
  local members = { { queue = queue, id = id, state = root_state } }
  local place = 1
  while members[place] do
    local parent_key = members[place].queue.base .. members[place].id
    for _, key in ipairs(child_keys(parent_key)) do
      local child_queue, child_id = family().find_relative(queue, key)
      -- Another job may have the id of a child that is gone.
      if child_id and redis.call("HGET", key, FIELD.parent_key) == parent_key then
        local state = state_of_job(child_queue, child_id)
        if state then members[#members + 1] = { queue = child_queue, id = child_id, state = state } end
      end
    end
    place = place + 1
  end
  return members
end

local state = state_of_job(queue, id)
if not state then return "missing" end
local is_over = state == "completed" or state == "failed" or state == "active"
if not is_over and forgetting().is_pending_tick(queue, id) then return "scheduled" end
local members = family_of(state)
for _, member in ipairs(members) do
  if member.state == "active" then return "active" end
end
for _, member in ipairs(members) do
  leave_place(member.queue, member.id, member.state)
  remove_job(member.queue, member.id, member.state, false, now)
end
announce({ queue })
return "done"

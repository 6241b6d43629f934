--[[ Adding trees: lists in which each parent stands before its children. Their columns are {kinds, kind_of, data}. ]]

-- Jobs of one kind differ by their data only. They share its table, which is that of one job at a time.
local function job_at(jobs, place)
  local job = jobs.kinds[jobs.kind_of[place]]
  job.data = jobs.data[place]
  return job
end

--[[ Add all of these; `head` is a job that is there and becomes the parent of the roots.
  Returns {id, outcome, id, outcome, …}; what stands below a duplicate is left out: "", "left-out". ]]
local function insert_all(queues, jobs, now, head)
  local answers, parents = {}, {}
  for i = 1, #jobs.data do
    local job = job_at(jobs, i)
    local queue, above = queues[job.queue], job.parent and 2 * job.parent - 1
    local id, outcome = "", "left-out"
    if not above or answers[above + 1] == "added" then
      local parent = above and { queue = queues[job_at(jobs, job.parent).queue], id = answers[above] } or head
      id, outcome = adding().insert(queue, job, now, parent)
      if job.has_children and outcome == "added" then parents[#parents + 1] = { queue, id } end
    end
    answers[2 * i - 1], answers[2 * i] = id, outcome
  end
  for _, parent in ipairs(parents) do family().release_if_ready(parent[1], parent[2], now) end
  return answers
end

local function ancestors_of(head)
  local found, job_key = {}, head and head.queue.base .. head.id
  while job_key and not found[job_key] do
    found[job_key] = true
    local parent_key = redis.call("HGET", job_key, FIELD.parent_key)
    job_key = parent_key and family().has_child(parent_key, job_key) and parent_key
  end
  return found
end

-- The place of the first child that cannot be one: it is another's, or the parent descends from it.
local function find_conflict(queues, jobs, now, head)
  local ancestors, is_closed = ancestors_of(head), {}
  for i = 1, #jobs.data do
    local job = job_at(jobs, i)
    local queue = queues[job.queue]
    if job.parent and is_closed[job.parent] then
      is_closed[i] = true
    elseif job.id and adding().is_taken(queue, job.id, now) then
      is_closed[i] = true
      local job_key = queue.base .. job.id
      local belongs_to = (job.parent or head) and redis.call("HGET", job_key, FIELD.parent_key)
      local is_ours = head and not job.parent and belongs_to == head.queue.base .. head.id
      if ancestors[job_key] then return i end
      if belongs_to and not is_ours and family().has_child(belongs_to, job_key) then return i end
    end
  end
  return nil
end

return {
  job_at = job_at,
  insert_all = insert_all,
  find_conflict = find_conflict,
}

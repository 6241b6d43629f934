--[[ The size of groups: what may wait there is looked at before anything of a batch is added. ]]

-- Whether somebody stands for the job already: then it takes no room.
local function is_known(queue, job, seen, now)
  local names = { job.id and "id " .. job.id, job.dedup and "subject " .. job.dedup.id }
  local known = job.id ~= nil and adding().is_taken(queue, job.id, now)
  if job.dedup and not job.dedup.replace then
    known = known or subjects().subject_owner(queue, queue.base .. KEY.dedup .. job.dedup.id) ~= nil
  end
  for _, name in pairs(names) do
    if name then
      known = known or seen[name] ~= nil
      seen[name] = true
    end
  end
  return known
end

-- What stands below a job that is there already is not added.
local function find_left_out(queues, jobs, now)
  local left_out = {}
  for i = 1, #jobs.data do
    local job = trees().job_at(jobs, i)
    local above = job.parent and trees().job_at(jobs, job.parent)
    local is_left_out = above and (left_out[job.parent]
      or above.id ~= nil and adding().is_taken(queues[above.queue], above.id, now))
    if is_left_out then left_out[i] = true end
  end
  return left_out
end

-- Those that would go into the line of a group at once: not after a delay, nor after their children.
local function by_group(queues, jobs, left_out)
  local batches, known = {}, {}
  for i = 1, #jobs.data do
    local job = trees().job_at(jobs, i)
    if job.group and not job.delay and not job.has_children and not left_out[i] then
      local queue = queues[job.queue]
      local whose = job.queue .. " " .. job.group
      if not known[whose] then
        known[whose] = { queue = queue, group = job.group, jobs = {} }
        batches[#batches + 1] = known[whose]
      end
      table.insert(known[whose].jobs, job)
    end
  end
  return batches
end

-- Returns {{"full", base, group, how many wait, how many may, how many more}} of the first that is too full, or nil.
local function find_full(queues, jobs, now)
  for _, batch in ipairs(by_group(queues, jobs, find_left_out(queues, jobs, now))) do
    local group = groups().open_group(batch.queue, batch.group)
    if group.max_size and group.waiting + #batch.jobs > group.max_size then
      local more, seen = 0, {}
      for _, job in ipairs(batch.jobs) do
        if not is_known(batch.queue, job, seen, now) then more = more + 1 end
      end
      if more > 0 and group.waiting + more > group.max_size then
        return { { "full", batch.queue.base, group.name, group.waiting, group.max_size, more } }
      end
    end
  end
  return nil
end

return {
  find_full = find_full,
}

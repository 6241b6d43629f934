--[[ Settling: each attempt of a batch ends by its verdict, unless its lease is lost. ]]
-- What the jobs' locks say: a token, or false.
local function read_locks(queues, settlements)
  local keys, locks = {}, {}
  for i, settlement in ipairs(settlements) do
    keys[i] = queues[settlement.queue].base .. settlement.id .. KEY.lock
  end
  in_chunks(keys, function(...)
    for _, lock in ipairs(redis.call("MGET", ...)) do locks[#locks + 1] = lock end
  end)
  return locks
end

-- Few batches have a parent in them, so they are asked about children as one.
local function note_children(queues, settlements)
  local keys, found = {}, 0
  for i, settlement in ipairs(settlements) do
    keys[i] = queues[settlement.queue].base .. settlement.id .. KEY.dependencies
  end
  in_chunks(keys, function(...) found = found + redis.call("EXISTS", ...) end)
  if found == 0 then return end
  for _, settlement in ipairs(settlements) do settlement.may_have_children = true end
end

local may_run_again = { retry = true, postponed = true, parked = true, ["await-children"] = true }

local function settle_one(queues, settlement, lock, now)
  local queue, id = queues[settlement.queue], settlement.id
  if not is_held(queue, id, settlement.token, settlement.epoch, lock) then return "lease-lost" end
  local job = read_job(queue, id)
  if job.epoch == 0 or not leave_active(queue, id) then return "lease-lost" end
  if job.group then groups().end_in_group(queue, job.group, id) end
  local verdict = settlement.verdict
  if job.cancelling and may_run_again[verdict] then
    releasing().end_as_asked(queue, id, job, now)
    return "settled"
  end
  return verdicts()[verdict](queue, id, job, settlement, now, queues) or "settled"
end

local function settle(queues, settlements, now)
  local outcomes, locks = {}, read_locks(queues, settlements)
  note_children(queues, settlements)
  for i, settlement in ipairs(settlements) do outcomes[i] = settle_one(queues, settlement, locks[i], now) end
  delete_locks(queues)
  return outcomes
end

--[[ Settling: each attempt of a batch ends by its verdict, unless its lease is lost.
  The batch is a table of columns, {queues, ids, tokens, epochs, words, said}: a table of each would take twice as long
  to read. ]]
local function keys_of(queues, ended, suffix)
  local keys = {}
  for i, id in ipairs(ended.ids) do keys[i] = queues[ended.queues[i]].base .. id .. suffix end
  return keys
end

-- What the jobs' locks say: a token, or false.
local function read_locks(queues, ended)
  local locks = {}
  in_chunks(keys_of(queues, ended, KEY.lock), function(...)
    for _, lock in ipairs(redis.call("MGET", ...)) do locks[#locks + 1] = lock end
  end)
  return locks
end

-- Few batches have a parent in them, so they are asked about children as one.
local function note_children(queues, ended)
  local found = 0
  in_chunks(keys_of(queues, ended, KEY.dependencies), function(...) found = found + redis.call("EXISTS", ...) end)
  ended.may_have_children = found > 0
end

local may_run_again = { retry = true, postponed = true, parked = true, ["await-children"] = true }

local function settle_one(queues, ended, place, now)
  local queue, id, word = queues[ended.queues[place]], ended.ids[place], ended.words[place]
  local job = read_job(queue, id)
  if not job.is_there or not leave_active(queue, id) then return "lease-lost" end
  if ended.may_have_children then job.may_have_children = true end
  if job.group then groups().end_in_group(queue, job.group, id) end
  if job.cancelling and may_run_again[word] then
    releasing().end_as_asked(queue, id, job, now)
    return "settled"
  end
  return verdicts()[word](queue, id, job, ended.said[place], now, queues) or "settled"
end

local function settle(queues, ended, now)
  local outcomes, locks = {}, read_locks(queues, ended)
  note_children(queues, ended)
  for i, id in ipairs(ended.ids) do
    local is_ours = is_held(queues[ended.queues[i]], id, ended.tokens[i], ended.epochs[i], locks[i])
    outcomes[i] = is_ours and settle_one(queues, ended, i, now) or "lease-lost"
  end
  delete_locks(queues)
  return outcomes
end

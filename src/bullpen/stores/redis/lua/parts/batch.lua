--[[ The end of a batch: what follows once from all jobs that left their places in it. ]]

local function report_drained(queues)
  for _, queue in ipairs(queues) do
    if next(queue.finished) and redis.call("EXISTS", queue.wait, queue.paused, queue.active,
      queue.prioritized, queue.delayed, queue.waiting_children, queue.own .. KEY.grouped) == 0 then
      emit(queue, nil, "drained")
    end
  end
end

-- In a queue with a cap, whoever sleeps is to learn that there is room again.
local function offer_room(queue)
  if #queue.unstalled == 0 or not settings(queue).concurrency then return end
  if redis.call("EXISTS", queue.wait, queue.prioritized, queue.own .. KEY.ring) > 0 then queue.has_work = true end
end

-- What follows from the jobs that ended, once for the whole batch.
local function close_batch(queues, now)
  delete_locks(queues)
  clear_suspicion(queues)
  for _, queue in ipairs(queues) do
    for state, kept in pairs(queue.kept) do
      in_chunks(kept, function(...) redis.call("ZADD", queue[state], ...) end)
    end
    for keep, state in pairs(queue.trims) do trimming().trim(queue, queue[state], keep, now) end
    for state, ended in pairs(queue.finished) do finishing().count_finished(queue, state, ended, now) end
    offer_room(queue)
  end
  announce(queues)
end

-- What all of these queues failed by themselves, as an answer.
local function failed_here(queues)
  local failed = {}
  for _, queue in ipairs(queues) do
    for _, id in ipairs(queue.failed_here) do failed[#failed + 1] = { queue.base, id } end
  end
  return failed
end

--[[ restore: take in jobs and memories of another store, all of them in one step.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 msgpack {now, run, departed = {id, …}, ids = {{id, until_ms}, …},
         subjects = {subject, …}, jobs = {{id, state, priority, fields, logs, due?, finished?, start_by?, tenant?,
         group?, name, subject?, journal = fields?, signals = {{name, payload}, …}?}, …}};
         a subject is {id, owner, until_ms?, kept = {id?, name, data, options}?}
  Returns "superseded" if another run began or none, {"taken", id} of a job whose id is another's here,
          or how many of the jobs were new
  Emits added, waiting, delayed ]]
local queue, asked = open_queue(ARGV[1], ARGV[2]), cmsgpack.unpack(ARGV[3])
local now = asked.now

local known = redis.call("HMGET", queue.own .. KEY.move, FIELD.move_run, FIELD.move_ids_below)
if known[1] ~= asked.run then return "superseded" end
local ids_below = tonumber(known[2])

local departed = {}
for _, id in ipairs(asked.departed) do departed[id] = true end

-- Those that are not here yet and those that came before, or nil and the id that is another's.
local function select_new()
  local new, arrived = {}, {}
  for _, job in ipairs(asked.jobs) do
    local has_arrived = not departed[job.id] and redis.call("SISMEMBER", queue.own .. KEY.arrivals, job.id) == 1
    local is_ours = not forgetting().is_explicit(job.id)
    if not has_arrived and is_ours then
      local number = tonumber(job.id)
      if number and number >= ids_below or redis.call("EXISTS", queue.base .. job.id) == 1 then return nil, job.id end
    end
    if not has_arrived and (is_ours or not adding().is_taken(queue, job.id, now)) then new[#new + 1] = job end
    if has_arrived and job.signals then arrived[#arrived + 1] = job end
  end
  return new, arrived
end

local function append_logs(id, lines)
  in_chunks(lines, function(...) redis.call("RPUSH", queue.base .. id .. KEY.logs, ...) end)
end

local function unpack_steps(job)
  in_chunks(job.journal or {}, function(...) redis.call("HSET", queue.own .. KEY.journal .. job.id, ...) end)
  if job.journal then steps().note_steps(queue, job.id, now) end
  for _, signal in ipairs(job.signals or {}) do signals().put_signal(queue, job.id, signal[1], signal[2], now) end
  if job.signals then redis.call("HSET", queue.own .. KEY.arrived_signals, job.id, #job.signals) end
end

-- What came to its mailbox on the other store after it was copied, each once; unless it has run here and is forgotten.
local function forward_signals(job)
  local known = tonumber(redis.call("HGET", queue.own .. KEY.arrived_signals, job.id) or nil) or 0
  if #job.signals <= known then return end
  redis.call("HSET", queue.own .. KEY.arrived_signals, job.id, #job.signals)
  if redis.call("EXISTS", queue.base .. job.id) == 0 then return end
  for i = known + 1, #job.signals do signals().deliver(queue, job.id, job.signals[i][1], job.signals[i][2], now) end
end

local function place(job)
  if job.finished then
    redis.call("ZADD", queue[job.state], job.finished, job.id)
    return
  end
  emit(queue, job.tenant, "added", "jobId", job.id, "name", job.name)
  if job.due then
    put_until(queue, job.id, job.due)
    emit(queue, job.tenant, "delayed", "jobId", job.id, "delay", job.due)
  else
    put_in_line(queue, job.id, job.priority, "end", job.group)
    emit(queue, job.tenant, "waiting", "jobId", job.id)
  end
end

-- Let the owner stand for its subject, unless another does already.
local function stand(subject)
  local subject_key = queue.base .. KEY.dedup .. subject.id
  local owner = subjects().subject_owner(queue, subject_key)
  if owner and owner ~= subject.owner then return end
  local left = subject.until_ms and subject.until_ms - now
  if left and left <= 0 then return end
  -- Told a second time, it may have become longer, and never shorter.
  if left and owner then left = math.max(left, redis.call("PTTL", subject_key)) end
  subjects().own_subject(subject_key, subject.owner, left)
  local kept = subject.kept
  if not kept then return end
  kept.dedup = { id = subject.id }
  subjects().keep_for_later(queue, kept, kept.id or string.format("%.0f", redis.call("INCR", queue.counter)))
end

local new, arrived = select_new()
if not new then return { "taken", arrived } end

for _, job in ipairs(arrived) do forward_signals(job) end
for id in pairs(departed) do
  redis.call("SREM", queue.own .. KEY.arrivals, id)
  redis.call("HDEL", queue.own .. KEY.arrived_signals, id)
end
for _, job in ipairs(new) do
  redis.call("SADD", queue.own .. KEY.arrivals, job.id)
  redis.call("HSET", queue.base .. job.id, unpack(job.fields))
  append_logs(job.id, job.logs)
  unpack_steps(job)
  if job.start_by then redis.call("ZADD", queue.own .. KEY.start_by, job.start_by, job.id) end
  place(job)
end
for _, job in ipairs(new) do
  if job.subject then stand(job.subject) end
end
for _, subject in ipairs(asked.subjects) do stand(subject) end
-- An id whose job is here needs no memory: removing the job is to free it.
for _, one in ipairs(asked.ids) do
  local is_here = redis.call("EXISTS", queue.base .. one.id) == 1
  if one.until_ms > now and not is_here then
    redis.call("ZADD", queue.own .. KEY.remembered_ids, one.until_ms, one.id)
  end
end
announce({ queue })
return #new

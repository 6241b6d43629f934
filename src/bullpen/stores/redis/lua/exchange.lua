--[[ exchange: end these attempts, then claim those jobs, all in one step. Either half may be empty.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms, queues = {{base, own}, …}, settlements = {{queue, id, token, epoch,
         verdict, …}, …}, wants = {{queue, count}, …}, lease = {token, worker, ms, queues}}; `queue` counts from 1
  The same request again gets the first answer, with those of its jobs that are still held under it.
  Returns {{"settled" | "lease-lost" | "pending-children", …}, next due ms or "", {{base, id, token, epoch, record fields}, …},
           {{base, id}, …} of jobs that failed here for good}
  Emits completed, failed, retries-exhausted, stalled, waiting, delayed, waiting-children, active, drained and what add emits ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local lease = asked.lease
lease.given = 0

local function answer(memory, fields_of, failed)
  local claimed = {}
  for place, job in ipairs(memory.claimed) do
    local token = lease_token(memory.token, place)
    local fields = fields_of(job, token)
    local base = memory.queues[job.queue].base
    if #fields > 0 then claimed[#claimed + 1] = { base, job.id, token, job.epoch, fields } end
  end
  return { memory.settled, memory.due or "", claimed, failed }
end

local remembered = recall(memory_key)
if remembered and remembered.settled then
  local queues = open_queues(remembered.queues)
  return answer(remembered, function(job, token)
    local queue = queues[job.queue]
    local is_ours = is_held(queue, job.id, token, job.epoch)
    return is_ours and redis.call("HGETALL", queue.base .. job.id) or {}
  end, {})
end

local queues = open_queues(asked.queues)
local memory = {
  queues = asked.queues,
  settled = settle(queues, asked.settlements, asked.now),
  token = lease.token,
  claimed = {},
}
local fields = {}

-- A request that was abandoned before it arrived still settles, but nobody is there to run new jobs.
local wants = remembered and remembered.abandoned and {} or asked.wants
for _, want in ipairs(wants) do
  local jobs, due = take(queues[want.queue], want.count, lease, asked.now)
  if due then memory.due = math.min(memory.due or due, due) end
  for _, job in ipairs(jobs) do
    local kept = { queue = want.queue, id = job.id, epoch = job.epoch }
    memory.claimed[#memory.claimed + 1] = kept
    fields[kept] = job.fields
  end
end
close_batch(queues, asked.now)
report_drained(queues)
remember(memory_key, memory, asked.memory_ms)
return answer(memory, function(job) return fields[job] end, failed_here(queues))

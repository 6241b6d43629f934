--[[ exchange: end these attempts, then claim those jobs, all in one step. Either half may be empty.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms, queues = {{base, own}, …}, ended = {queues, ids, tokens, epochs,
         words, said}, each a list, wants = {{queue, count}, …}, at_most?, group?, lease = {token, worker, ms, queues}};
         `queue` counts from 1; `said` is the result of a "completed", else what the verdict has to say as a table
  With `ahead` in place of `now`: by how many ms the caller's clock is before the server's; for a claim that was sent
  long before it runs. One that finds nothing is not remembered, so that the same request may come again.
  The same request again gets the first answer, with those of its jobs that are still held under it.
  Returns {{"settled" | "lease-lost" | "pending-children", …}, next due ms or "",
           {{record fields, …, base, id, token, epoch}, …}, {{base, id}, …} of jobs that failed here for good,
           start ms, worker}; the last two are what the claim wrote into the records after they were read, or ""
           if they have it
  Emits completed, failed, retries-exhausted, stalled, waiting, delayed, waiting-children, active, drained and
        what add emits ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local has_waited = not asked.now
if has_waited then asked.now = server_ms() + asked.ahead end
local lease = asked.lease
lease.token = claim_token(lease.token, asked.now)

-- The answer that was given before, with those of its jobs that are still held.
local function answer_again(remembered)
  local queues, claimed = open_queues(remembered.queues), {}
  for place = 1, count_claimed(remembered) do
    local number, id, epoch = claimed_at(remembered, place)
    local queue, token = queues[number], token_prefix(remembered.token, number) .. id
    local fields = is_held(queue, id, token, epoch) and redis.call("HGETALL", queue.base .. id) or {}
    if #fields > 0 then claimed[#claimed + 1] = as_claimed(fields, queue, id, token, epoch) end
  end
  return { remembered.settled, remembered.due or "", claimed, remembered.failed or {}, "", "" }
end

local function claim(queues, wants, memory)
  local claimed = {}
  for _, want in ipairs(wants) do
    local count = math.min(want.count, asked.at_most and asked.at_most - #claimed or want.count)
    lease.token_prefix = token_prefix(lease.token, want.queue)
    local jobs, due = take(queues[want.queue], count, lease, asked.now, asked.group)
    if due then memory.due = math.min(memory.due or due, due) end
    for _, job in ipairs(jobs) do
      claimed[#claimed + 1] = job
      note_claimed(memory, want.queue, job[#job - 2], job[#job])
    end
  end
  return claimed
end

local remembered = recall(memory_key)
if remembered and remembered.settled then return answer_again(remembered) end

local queues = open_queues(asked.queues)
local memory = {
  queues = asked.queues,
  settled = settle(queues, asked.ended, asked.now),
  token = lease.token,
  claimed = {},
}
-- A request that was abandoned before it arrived still settles, but nobody is there to run new jobs.
local claimed = claim(queues, remembered and remembered.abandoned and {} or asked.wants, memory)
close_batch(queues, asked.now)
report_drained(queues)
local failed = failed_here(queues)
if #failed > 0 then memory.failed = failed end
if #claimed + #failed > 0 or not has_waited then remember(memory_key, memory, asked.memory_ms) end
return { memory.settled, memory.due or "", claimed, failed, text(asked.now), lease.worker }

--[[ add: put new jobs into their queues, all of them in one step.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms, queues = {{base, own}, …}, counts = {how many jobs of each
         queue, …}, jobs = {{queue, id?, name, data, options, delay?, priority?, lifo?, dedup?, tenant?, group?,
         start_by?}, …}};
         `queue` counts from 1
  Returns {{id, "added" | "duplicate" | "deduplicated" | "replaced" | "kept-last"}, …} in the order asked
          or {"full", base, group, how many wait there, how many may, how many more}, and nothing was added
  Emits added, waiting, delayed, duplicated, deduplicated, removed ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local remembered = recall(memory_key)
if remembered then return remembered.added end

local queues = open_queues(asked.queues)
local full = find_full(queues, asked.jobs, asked.now)
if full then return full end

for i, count in ipairs(asked.counts) do take_numbers(queues[i], count) end
local added = {}
for i, job in ipairs(asked.jobs) do
  local id, outcome = insert(queues[job.queue], job, asked.now)
  added[i] = { id, outcome }
end
announce(queues)
remember(memory_key, { added = added }, asked.memory_ms)
return added

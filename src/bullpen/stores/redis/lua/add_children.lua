--[[ add_children: put new jobs into their queues as children of a running job, all of them in one step.
  KEYS 1 the request's memory
  ARGV 1 msgpack as for add, and lease = {queue, id, token, epoch}
  Returns what add returns, or "lease-lost": then nothing changed
  Emits added, waiting, delayed, waiting-children, duplicated ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local remembered = recall(memory_key)
if remembered then return remembered.added end

local queues, lease = open_queues(asked.queues), asked.lease
local head = { queue = queues[lease.queue], id = lease.id, is_older = true }
if not is_held(head.queue, head.id, lease.token, lease.epoch) then return "lease-lost" end
local conflict = trees().find_conflict(queues, asked.jobs, asked.now, head)
if conflict then return conflict end
local full = sizes().find_full(queues, asked.jobs, asked.now)
if full then return full end
for i, count in ipairs(asked.counts) do adding().take_numbers(queues[i], count) end
local added = trees().insert_all(queues, asked.jobs, asked.now, head)
announce(queues)
remember(memory_key, { added = added }, asked.memory_ms)
return added

--[[ add: put new jobs into their queues, all of them in one step.
  KEYS 1 the request's memory
  ARGV 1 msgpack {now, memory_ms, queues = {{base, own}, …}, counts = {how many jobs of each queue, …},
         jobs = {kinds = {{queue, id?, name, options, delay?, priority?, lifo?, dedup?, tenant?, group?, start_by?,
         parent?, policy?, has_children?}, …}, kind_of = {the kind of each job, …}, data = {its data, …}},
         has_trees?, has_groups?}; `queue` and `kind_of` count from 1, and so does `parent`, the place of the job's parent
  Returns {id, "added" | "duplicate" | "deduplicated" | "replaced" | "kept-last" | "left-out", id, …} in the order
          asked, or the place of a child that is another's: then nothing changed
          or {{"full", base, group, how many wait there, how many may, how many more}}, and nothing was added
  Emits added, waiting, delayed, waiting-children, duplicated, deduplicated, removed ]]
local memory_key, asked = KEYS[1], cmsgpack.unpack(ARGV[1])

local remembered = recall(memory_key)
if remembered then return remembered.added end

local queues = open_queues(asked.queues)
local conflict = asked.has_trees and trees().find_conflict(queues, asked.jobs, asked.now)
if conflict then return conflict end
local full = asked.has_groups and sizes().find_full(queues, asked.jobs, asked.now)
if full then return full end

for i, count in ipairs(asked.counts) do adding().take_numbers(queues[i], count) end
local added = trees().insert_all(queues, asked.jobs, asked.now)
announce(queues)
remember(memory_key, { added = added }, asked.memory_ms)
return added

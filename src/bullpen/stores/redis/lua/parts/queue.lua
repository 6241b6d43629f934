--[[ A queue as the scripts see it: its keys, its settings, its events and its markers. ]]
local DEFAULT_MAX_EVENTS = 10000
local DELAY_STEP = 4096 -- a delayed score is the run time in ms times this, plus a place in that ms

local TRIM_EVERY = 100 -- events; the server drops whole nodes of about that many
local CHUNK = 1000 -- how much of a list one command gets, for the sake of Lua's stack

-- A whole number as it is stored. Redis prints numbers of Lua with 17 digits, as if they were fractions,
-- which costs as much as a small command; so does Lua itself where a number is joined to a text.
local texts = {}
local function text(number)
  local known = texts[number]
  if not known then
    known = string.format("%d", number)
    texts[number] = known
  end
  return known
end

local function in_chunks(list, act)
  for first = 1, #list, CHUNK do act(unpack(list, first, math.min(first + CHUNK - 1, #list))) end
end

local opened = {} -- by their bases
local relatives = {} -- queues of parents and children, which nobody named in the call

-- `base` is what its BullMQ keys begin with, `own` what the others do.
-- Each call makes this table, so it holds what most of them use; other keys are put together where they are used.
local function open_queue(base, own)
  opened[base] = {
    base = base,
    own = own,
    meta = base .. KEY.meta,
    counter = base .. KEY.counter,
    wait = base .. KEY.wait,
    paused = base .. KEY.paused,
    active = base .. KEY.active,
    prioritized = base .. KEY.prioritized,
    priority_counter = base .. KEY.priority_counter,
    delayed = base .. KEY.delayed,
    waiting_children = base .. KEY.waiting_children,
    completed = base .. KEY.completed,
    failed = base .. KEY.failed,
    events = base .. KEY.events,
    marker = base .. KEY.marker,
    stalled = base .. KEY.stalled,
    limiter = base .. KEY.limiter,
    told = 0, -- events
    joined = {}, -- ids for the end of `wait`, not pushed yet
    freed = {}, -- locks that are not deleted yet
    unstalled = {}, -- ids that left `active`
    failed_here = {}, -- ids of jobs that the script failed by itself
    trims = {}, -- retention rules to apply once the batch is through
    kept = {}, -- score, id, … of those of them that stay, by state; not added yet
    finished = {}, -- how many jobs ended here, by state
  }
  return opened[base]
end

-- The queue with this base, also one that the call did not name.
local function queue_at(base)
  if not opened[base] then
    local prefix, name = string.match(base, "^(.*):([^:]+):$")
    relatives[#relatives + 1] = open_queue(base, prefix .. KEY.own_of_queue .. name .. ":")
  end
  return opened[base]
end

local function open_queues(asked)
  local queues = {}
  for i, queue in ipairs(asked) do
    queues[i] = open_queue(queue.base, queue.own)
  end
  return queues
end

-- The queue with its settings, which are read once in a script.
local function settings(queue)
  if queue.max_events then return queue end
  local found = redis.call("HMGET", queue.meta, FIELD.paused, FIELD.concurrency, FIELD.rate_max,
    FIELD.rate_ms, FIELD.max_events, FIELD.version, FIELD.queue_closed, FIELD.listed)
  queue.is_paused = found[1] ~= false
  -- A key that is set to nil still takes a place in the table, which would have to grow.
  if found[2] then queue.concurrency = tonumber(found[2]) end
  if found[3] then queue.rate_max = tonumber(found[3]) end
  if found[4] then queue.rate_ms = tonumber(found[4]) end
  if found[5] then queue.max_events = found[5] end
  if found[7] then queue.closed_until = tonumber(found[7]) end
  queue.is_listed = found[8] ~= false
  queue.is_v5 = string.sub(found[6] or "", 1, 9) == "bullmq:5."
  return queue
end

-- Where waiting jobs stand. BullMQ 5 moves them aside while paused, and its resume lets that list take
-- the place of `wait`, with whatever stands there: on a queue of its making we do as it does.
local function line_of(queue)
  if not settings(queue).is_paused then return queue.wait end
  local is_aside = queue.is_v5 or redis.call("EXISTS", queue.paused) == 1
  return is_aside and queue.paused or queue.wait
end

-- BullMQ has no list of queues; ours gets each the first time that it says something to one of us.
local function list_queue(queue)
  local prefix, name = string.match(queue.base, "^(.*):([^:]+):$")
  redis.call("SADD", prefix .. KEY.queues, name)
  redis.call("HSET", queue.meta, FIELD.listed, 1)
  queue.is_listed = true
end

local function unlist_queue(queue)
  local prefix, name = string.match(queue.base, "^(.*):([^:]+):$")
  redis.call("SREM", prefix .. KEY.queues, name)
end

-- Every queue that says something has a length for its log, by which it is also known to exist.
local function max_events(queue)
  settings(queue)
  if not queue.max_events then
    queue.max_events = text(DEFAULT_MAX_EVENTS)
    redis.call("HSET", queue.meta, FIELD.max_events, queue.max_events)
    redis.call("PERSIST", queue.events) -- one that was obliterated begins anew
  end
  if not queue.is_listed then list_queue(queue) end
  return queue.max_events
end

local function is_blocked(queue)
  settings(queue)
  if queue.is_paused then return true end
  return queue.concurrency ~= nil and redis.call("LLEN", queue.active) >= queue.concurrency
end

local function exists(queue)
  return redis.call("EXISTS", queue.meta) == 1
end

-- To trim the log costs more than to add to it: the first event of a script does, and each hundredth.
local function log_event(queue, event, ...)
  if queue.told % TRIM_EVERY == 0 then
    redis.call("XADD", queue.events, "MAXLEN", "~", max_events(queue), "*", "event", event, ...)
  else
    redis.call("XADD", queue.events, "*", "event", event, ...)
  end
  queue.told = queue.told + 1
end

local function emit(queue, tenant, event, ...)
  if tenant then
    log_event(queue, event, "tenant", tenant, ...)
  else
    log_event(queue, event, ...)
  end
end

-- What an event says beside, if it tells all that lists show: then a reader of the log need not look at the job.
local function recorded(now, priority)
  if priority == "0" then return "at", text(now) end
  return "at", text(now), "priority", priority
end

-- Whoever joined the end of the line is pushed in one go, before anybody looks.
local function push_joined(queue)
  if #queue.joined == 0 then return end
  local line = line_of(queue)
  in_chunks(queue.joined, function(...) redis.call("LPUSH", line, ...) end)
  queue.joined = {}
end

-- The run time of the first delayed job, or nil.
local function next_due(queue)
  local first = redis.call("ZRANGE", queue.delayed, "0", "0", "WITHSCORES")
  return first[2] and math.floor(tonumber(first[2]) / DELAY_STEP)
end

local function mark_work(queue)
  if not is_blocked(queue) then redis.call("ZADD", queue.marker, "0", "0") end
end

local function mark_delay(queue)
  local due = next_due(queue)
  if due then redis.call("ZADD", queue.marker, due, "1") end
end

-- Wake sleeping workers: once for each queue, when all is in place.
local function announce(queues)
  for _, known in ipairs({ queues, relatives }) do
    for _, queue in ipairs(known) do
      push_joined(queue)
      if queue.stand_touched then queue.stand_touched(queue) end
      if queue.has_work then mark_work(queue) end
      if queue.has_delayed then mark_delay(queue) end
    end
  end
end

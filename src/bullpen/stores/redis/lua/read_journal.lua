--[[ read_journal: the recorded steps from a place on.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 the job's id  4 the first place  5 how many places at most
  Returns "missing" | {one more than the highest place, {{head, value or nil}, …}}
  Emits nothing ]]
local CHUNK = 500
local queue, id, first, limit = open_queue(ARGV[1], ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

if redis.call("EXISTS", queue.base .. id) == 0 then return "missing" end
local journal = queue.own .. KEY.journal .. id
local places = tonumber(redis.call("HGET", journal, KEY.places) or nil) or 0
local found = {}

local function read(from, to)
  local fields = {}
  for place = from, to do
    fields[#fields + 1] = place
    fields[#fields + 1] = place .. KEY.value
  end
  local values = redis.call("HMGET", journal, unpack(fields))
  for i = 1, #values, 2 do
    if values[i] then found[#found + 1] = { string.match(values[i], "^%a+ (.*)$"), values[i + 1] } end
  end
end

local last = math.min(first + limit, places) - 1
for from = first, last, CHUNK do read(from, math.min(from + CHUNK - 1, last)) end
return { places, found }

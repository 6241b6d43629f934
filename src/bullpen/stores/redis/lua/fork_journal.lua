--[[ fork_journal: copy what a job recorded before a place to another job without a journal.
  KEYS 1 the settings of the first job's queue
  ARGV 1 msgpack {now, at, from = {base, own, id}, to = {base, own, id}}
  Returns "missing" | "missing target" | "refused" | how many entries were copied
  Emits nothing ]]
local asked = cmsgpack.unpack(ARGV[1])
local source, target = open_queue(asked.from.base, asked.from.own), open_queue(asked.to.base, asked.to.own)
local from_id, to_id = asked.from.id, asked.to.id
local from_key, to_key = source.own .. KEY.journal .. from_id, target.own .. KEY.journal .. to_id

if redis.call("EXISTS", source.base .. from_id) == 0 then return "missing" end
local state = state_of_job(target, to_id)
if not state then return "missing target" end
if state == "active" or state == "completed" or state == "failed" then return "refused" end
if redis.call("EXISTS", to_key) == 1 then return "refused" end

local copied, places = 0, tonumber(redis.call("HGET", from_key, KEY.places) or nil) or 0
for place = 0, math.min(asked.at, places) - 1 do
  local found = redis.call("HMGET", from_key, place, place .. KEY.value)
  if found[1] then
    redis.call("HSET", to_key, place, found[1], KEY.places, place + 1)
    if found[2] then redis.call("HSET", to_key, place .. KEY.value, found[2]) end
    copied = copied + 1
  end
end
if copied > 0 then steps().note_steps(target, to_id, asked.now) end
return copied

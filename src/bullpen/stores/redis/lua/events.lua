--[[ events: a page of a queue's log, with what is needed to see whether some of it was dropped.
  KEYS 1 the events stream
  ARGV 1 read after this id, or "" for none  2 how many at most
  Returns {entries, how many were ever logged, how many are there, the last id}
  Emits nothing ]]
local stream, after, limit = KEYS[1], ARGV[1], ARGV[2]

if redis.call("EXISTS", stream) == 0 then return { {}, 0, 0, "0-0" } end
local facts = redis.call("XINFO", "STREAM", stream)
local known = {}
for i = 1, #facts, 2 do known[facts[i]] = facts[i + 1] end
local entries = {}
if after ~= "" then entries = redis.call("XRANGE", stream, "(" .. after, "+", "COUNT", limit) end
return { entries, known["entries-added"], known["length"], known["last-generated-id"] }

--[[ workers: what the workers said that beat lately.
  KEYS 1 the workers, by the time at which each is forgotten
  ARGV 1 what each of them said  2 now
  Returns {words, …}
  Emits nothing ]]
local workers, infos, now = KEYS[1], ARGV[1], ARGV[2]

local words = {}
for i, name in ipairs(redis.call("ZRANGEBYSCORE", workers, "(" .. now, "+inf")) do
  words[i] = redis.call("HGET", infos, name)
end
return words

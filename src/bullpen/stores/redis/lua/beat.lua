--[[ beat: what a worker says of itself, until a time.
  KEYS 1 the workers, by the time at which each is forgotten
  ARGV 1 what each of them said  2 the worker's name  3 its words  4 now  5 until when
  Returns how many silent ones were forgotten
  Emits nothing ]]
local workers, infos, name, words, now, until_ms = KEYS[1], unpack(ARGV)

local silent = redis.call("ZRANGEBYSCORE", workers, "-inf", now)
for _, worker in ipairs(silent) do
  redis.call("HDEL", infos, worker)
  redis.call("ZREM", workers, worker)
end
redis.call("ZADD", workers, until_ms, name)
redis.call("HSET", infos, name, words)
return #silent

--[[ forget_subjects: free what stood for jobs that are gone with their queue.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2… keys of subjects
  Returns how many were freed
  Emits nothing ]]
local base, subjects = ARGV[1], { unpack(ARGV, 2) }

local freed = 0
for _, subject in ipairs(subjects) do
  local owner = redis.call("GET", subject)
  if owner and redis.call("EXISTS", base .. owner) == 0 then freed = freed + redis.call("DEL", subject) end
end
return freed

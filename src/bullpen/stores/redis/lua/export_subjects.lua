--[[ export_subjects: who stands for subjects that have a time of their own, and for how much longer.
  KEYS 1 the queue's settings
  ARGV 1… keys of subjects
  Returns {{key, owner, time left ms}, …}
  Emits nothing ]]
local subjects = ARGV

local found = {}
for _, subject in ipairs(subjects) do
  local owner, left = redis.call("GET", subject), redis.call("PTTL", subject)
  if owner and left > 0 then found[#found + 1] = { subject, owner, left } end
end
return found

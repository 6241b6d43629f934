--[[ The server's own time: callers tell theirs, but not in a script that they sent long before it runs. ]]
-- Returns ms, or nil if our user may not ask for it.
local function server_ms()
  local time = redis.pcall("TIME")
  if time.err then return nil end
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

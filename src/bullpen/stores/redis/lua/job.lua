--[[ job: one job's record and the state it is in.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 the job's id
  Returns {} if there is no such job, else {state, run time ms or "", record fields}
  Emits nothing ]]
local DELAY_STEP = 4096
local base, id = ARGV[1], ARGV[2]

local function state_of()
  if redis.call("ZSCORE", base .. KEY.completed, id) then return "completed" end
  if redis.call("ZSCORE", base .. KEY.failed, id) then return "failed" end
  local score = redis.call("ZSCORE", base .. KEY.delayed, id)
  if score then return "delayed", math.floor(tonumber(score) / DELAY_STEP) end
  if redis.call("ZSCORE", base .. KEY.prioritized, id) then return "prioritized" end
  if redis.call("ZSCORE", base .. KEY.waiting_children, id) then return "waiting-children" end
  if redis.call("LPOS", base .. KEY.active, id) then return "active" end
  if redis.call("LPOS", base .. KEY.wait, id) then return "waiting" end
  if redis.call("LPOS", base .. KEY.paused, id) then return "waiting" end
  return nil
end

local fields = redis.call("HGETALL", base .. id)
local state, run_at = state_of()
if #fields == 0 or not state then return {} end
return { state, run_at or "", fields }

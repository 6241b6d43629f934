--[[ Removing jobs: with what belongs to them, and what they stood for. ]]

-- Whether the id stays taken for a day is the caller's choice. The job has left its place.
local function remove_job(queue, id, state, is_remembered, now)
  local found = redis.call("HMGET", queue.base .. id, FIELD.dedup_id, FIELD.tenant, FIELD.parent_key)
  if is_remembered and forgetting().is_explicit(id) then forgetting().remember_id(queue, id, now) end
  forgetting().delete_record(queue, id)
  emit(queue, found[2] or nil, "removed", "jobId", id, "prev", state)
  local is_finished = state == "completed" or state == "failed"
  local dedup_id = not is_finished and found[1]
  if dedup_id and freeing().owns_subject(queue, id, dedup_id) then freeing().free_subject(queue, dedup_id, now) end
  if found[3] then family().child_gone(queue, id, found[3], now) end
end

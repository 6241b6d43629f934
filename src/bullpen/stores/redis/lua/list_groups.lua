--[[ list_groups: a page of the groups that have jobs or something of their own, by name.
  KEYS 1 the queue's settings
  ARGV 1 the queue's base  2 and of our own keys  3 now  4 how many  5 from which name  6 to which, both as in BYLEX
  Returns "missing" if there never was such a queue, else {{the default's limits}, {name, waiting, active,
          paused or "", closed until ms or "", since when its first job waits or "", {its own limits}}, …};
          limits are weight, concurrency, rate max, rate ms, max size
  Emits nothing ]]
local queue, now, limit = open_queue(ARGV[1], ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local first, last = ARGV[5], ARGV[6]

if not exists(queue) then return "missing" end

local function words(found)
  local said = {}
  for i = 1, 5 do said[i] = found[i] or "" end
  return said
end

local function oldest(group)
  local id = redis.call("ZRANGE", group.line, 0, 0)[1]
  if not id then return "" end
  local found = redis.call("HMGET", queue.base .. id, FIELD.entered, FIELD.added)
  return found[1] or found[2] or ""
end

local page = { words(groups().group_defaults(queue)) }
for _, name in ipairs(redis.call("ZRANGEBYLEX", queue.own .. KEY.groups, first, last, "LIMIT", 0, limit)) do
  local group = groups().open_group(queue, name)
  local closed = groups().closed_until(group)
  page[#page + 1] = { name, group.waiting, group.active, group.is_paused and "paused" or "",
    closed > now and closed or "", oldest(group), words(group.said) }
end
return page

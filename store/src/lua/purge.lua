-- KEYS: the row; the timers, the outbox, the spawns; processed ids, trace, trace counter; the index, if ids are kept in one.
-- ARGV: the expected version, how many timers, events, spawns; then a member for each timer, a field and its value for each
-- event and each spawn, then the id. Replies 1 if there was a row, 0 if there was none, -1 if it is at another version.
local kinds = { 'string', 'zset', 'hash', 'hash' }
for at, kind in ipairs(kinds) do
  local found = redis.call('TYPE', KEYS[at]).ok
  if found ~= 'none' and found ~= kind then
    return corrupt(at)
  end
end
local index = KEYS[8]
if index then
  local found = redis.call('TYPE', index).ok
  if found ~= 'none' and found ~= 'zset' then
    return corrupt(8)
  end
end
local row = redis.call('GET', KEYS[1])
if row then
  local found = version_of(row)
  if not found then
    return corrupt(1)
  end
  if found ~= tonumber(ARGV[1]) then
    return -1
  end
end
local at = 4
for _ = 1, tonumber(ARGV[2]) do
  at = at + 1
  redis.call('ZREM', KEYS[2], ARGV[at])
end
for hash = 3, 4 do
  for _ = 1, tonumber(ARGV[hash]) do
    local field, value = ARGV[at + 1], ARGV[at + 2]
    at = at + 2
    -- After a loss of data a number may have been handed out again, for somebody else's entry.
    if redis.call('HGET', KEYS[hash], field) == value then
      redis.call('HDEL', KEYS[hash], field)
    end
  end
end
if index then
  redis.call('ZREM', index, ARGV[#ARGV])
end
redis.call('DEL', KEYS[1], KEYS[5], KEYS[6], KEYS[7])
return row and 1 or 0

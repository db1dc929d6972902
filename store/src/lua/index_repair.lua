-- KEYS: the index, then rows. ARGV: for each row its id and the score at which it is added if it is missing (empty: not).
-- Replies how many entries were added or removed.
local changed = 0
for row = 2, #KEYS do
  local id, score = ARGV[2 * row - 3], ARGV[2 * row - 2]
  if redis.call('EXISTS', KEYS[row]) == 0 then
    changed = changed + redis.call('ZREM', KEYS[1], id)
  elseif score ~= '' then
    changed = changed + redis.call('ZADD', KEYS[1], 'NX', score, id)
  end
end
return changed

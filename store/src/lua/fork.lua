-- KEYS: the row to copy, the row to make. ARGV: the row as it was read, the new row.
-- Replies 1 if the new row was made, 0 if there is one already, -1 if the row to copy is another by now.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
-- Its type was seen when it was read; a value of another one is another value.
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -1
end
redis.call('SET', KEYS[2], ARGV[2])
return 1

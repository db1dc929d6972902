-- KEYS: the row to copy, the row to make; the index, if ids are kept in one. ARGV: the row as it was read, the new row, the
-- new id, milliseconds to live or nothing.
-- Replies 1 if the new row was made, 0 if there is one already, -1 if the row to copy is another by now.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
-- Its type was seen when it was read; a value of another one is another value.
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -1
end
if KEYS[3] then
  local now = redis.call('TIME')
  -- Of another type it stops the script here, before the row is written.
  redis.call('ZADD', KEYS[3], 'NX', now[1] .. '.' .. string.rep('0', 6 - #now[2]) .. now[2], ARGV[3])
end
redis.call('SET', KEYS[2], ARGV[2])
if ARGV[4] ~= '' then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return 1

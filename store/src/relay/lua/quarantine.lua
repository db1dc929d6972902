-- KEYS: where it is, where it goes. ARGV: the type of both, the field or member, the value or score that it must still have.
local kind, name, seen = ARGV[1], ARGV[2], ARGV[3]
if not holds(KEYS[1], kind) then
  return corrupt(1)
end
if not holds(KEYS[2], kind) then
  return corrupt(2)
end
if kind == 'hash' then
  if redis.call('HGET', KEYS[1], name) ~= seen then
    return 0
  end
  -- A number may come again after a loss of data: what is there already is evidence too.
  if redis.call('HSETNX', KEYS[2], name, seen) == 0 and redis.call('HGET', KEYS[2], name) ~= seen then
    redis.call('HSET', KEYS[2], name .. ':' .. redis.sha1hex(seen), seen)
  end
  return redis.call('HDEL', KEYS[1], name)
end
local score = redis.call('ZSCORE', KEYS[1], name)
if not score or (score ~= seen and tonumber(score) ~= tonumber(seen)) then
  return 0
end
redis.call('ZADD', KEYS[2], score, name)
return redis.call('ZREM', KEYS[1], name)

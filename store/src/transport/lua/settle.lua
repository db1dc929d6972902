-- KEYS: the lock, the queue, the priorities, the tiers 0 to 4, the dead letters; the count of deliveries, if they are counted.
-- ARGV: the present or nothing, the token, the group, what to do, milliseconds for `hold`, 1 if this delivery does not count.
local token = redis.pcall('GET', KEYS[1])
if type(token) == 'table' then
  return corrupt(1)
end
if token ~= ARGV[2] then
  return 0
end
if not holds(KEYS[2], 'list') then
  return corrupt(2)
end
local tier = tier_of(KEYS[3], ARGV[3])
if tier == false then
  return corrupt(3)
end
-- The Python transport takes a group without a priority for one of priority 0.
local ready = 4 + (tier or 0)
if not holds(KEYS[ready], 'zset') then
  return corrupt(ready)
end
if ARGV[4] == 'bury' and not holds(KEYS[9], 'list') then
  return corrupt(9)
end
local tries = KEYS[10]
if tries and not holds(tries, 'string') then
  return corrupt(10)
end
local now = now_ms(ARGV[1])
-- First, for where memory is short a script may go on writing once it has begun: whoever drains a queue makes room.
redis.call('DEL', KEYS[1])
if tries and (ARGV[4] == 'hold' or ARGV[4] == 'release') then
  local lifetime = whole(ARGV[5] + REMEMBERED_MS)
  local count, digest = string.match(redis.call('GET', tries) or '', '^(%d+):(%x+)$')
  if ARGV[6] == '1' and count then
    -- The colon at the end says that it was taken back: a parked lease may say so again.
    redis.call('SET', tries, whole(math.max(count - 1, 0)) .. ':' .. digest .. ':', 'PX', lifetime)
  else
    redis.call('PEXPIRE', tries, lifetime)
  end
end
if ARGV[4] == 'hold' then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[5])
  redis.call('ZADD', KEYS[ready], whole(now + ARGV[5]), ARGV[3])
  return 1
end
if ARGV[4] == 'release' then
  redis.call('ZADD', KEYS[ready], 0, ARGV[3])
  return 1
end
if tries then
  redis.call('DEL', tries)
end
local head = redis.call('LPOP', KEYS[2])
if head and ARGV[4] == 'bury' then
  redis.call('RPUSH', KEYS[9], head)
end
if redis.call('LLEN', KEYS[2]) == 0 then
  redis.call('ZREM', KEYS[ready], ARGV[3])
  redis.call('HDEL', KEYS[3], ARGV[3])
else
  redis.call('ZADD', KEYS[ready], whole(now), ARGV[3])
end
return 1

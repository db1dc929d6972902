-- KEYS: the queue, the priorities, the tiers 0 to 4. ARGV: the group, the event, the priority of a group that has none.
if not holds(KEYS[1], 'list') then
  return corrupt(1)
end
local tier = tier_of(KEYS[2], ARGV[1])
if tier == false then
  return corrupt(2)
end
local ready = 3 + (tier or ARGV[3])
if not holds(KEYS[ready], 'zset') then
  return corrupt(ready)
end
local length = redis.call('RPUSH', KEYS[1], ARGV[2])
if not tier then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
end
-- A group that is leased or parked keeps its time.
redis.call('ZADD', KEYS[ready], 'NX', 0, ARGV[1])
return length

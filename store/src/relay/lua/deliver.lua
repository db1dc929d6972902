-- KEYS: where they wait, the priorities, the tiers 0 to 4, the queue of each that has one.
-- ARGV: the type of the first key; then for each: field or member, the value or score that it must still have, the group,
-- its event, the priority of a group that has none (empty: there is no group, take it off only).
local kind = ARGV[1]
for index = 1, 7 do
  local wanted = index == 1 and kind or index == 2 and 'hash' or 'zset'
  if not holds(KEYS[index], wanted) then
    return corrupt(index)
  end
end

-- Adding to a queue is the first write of each; whoever may do that but not the rest would deliver without end.
local removal = kind == 'hash' and 'HDEL' or 'ZREM'
if redis.acl_check_cmd then
  local may = redis.acl_check_cmd(removal, KEYS[1], '') and redis.acl_check_cmd('HSET', KEYS[2], '', '')
  for index = 3, 7 do
    may = may and redis.acl_check_cmd('ZADD', KEYS[index], 0, '')
  end
  if not may then
    return redis.error_reply('NOPERM this user may not write all keys of a delivery')
  end
end

local function waits(name, seen)
  if kind == 'hash' then
    return redis.call('HGET', KEYS[1], name) == seen
  end
  local score = redis.call('ZSCORE', KEYS[1], name)
  return score and tonumber(score) == tonumber(seen)
end

local answer, queue = {}, 7
for at = 2, #ARGV, 5 do
  local name, seen, group, event, priority = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local outcome = 1
  if priority ~= '' then
    queue = queue + 1
  end
  if not waits(name, seen) then
    outcome = 0
  elseif priority ~= '' then
    local tier = tier_of(KEYS[2], group)
    if tier == false or not holds(KEYS[queue], 'list') then
      outcome = -1
    else
      redis.call('RPUSH', KEYS[queue], event)
      if not tier then
        redis.call('HSET', KEYS[2], group, priority)
      end
      -- A group that is leased or parked keeps its time.
      redis.call('ZADD', KEYS[3 + (tier or priority)], 'NX', 0, group)
    end
  end
  if outcome == 1 then
    redis.call(removal, KEYS[1], name)
  end
  table.insert(answer, outcome)
end
return answer

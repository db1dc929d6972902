-- KEYS: the tiers 0 to 4. ARGV: the present or nothing.
local now = now_ms(ARGV[1])
for index, tier in ipairs(KEYS) do
  if not holds(tier, 'zset') then
    return corrupt(index)
  end
end
local answer = { whole(now) }
for _, tier in ipairs(KEYS) do
  local later = redis.call('ZRANGEBYSCORE', tier, '(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local score = later[2] and tonumber(later[2])
  table.insert(answer, redis.call('ZCARD', tier))
  table.insert(answer, redis.call('ZCOUNT', tier, '-inf', whole(now)))
  table.insert(answer, score and score < 2 ^ 53 and whole(math.ceil(score)) or '')
end
return answer

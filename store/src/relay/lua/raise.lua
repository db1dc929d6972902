-- KEYS: counters. ARGV: for each the least that it must be.
local found = {}
for index, key in ipairs(KEYS) do
  if not holds(key, 'string') then
    return corrupt(index)
  end
  found[index] = redis.call('GET', key) or '0'
  if not string.find(found[index], '^%-?%d+$') then
    return corrupt(index)
  end
end
local answer = {}
for index, key in ipairs(KEYS) do
  local raised = tonumber(found[index]) < tonumber(ARGV[index])
  if raised then
    redis.call('SET', key, ARGV[index])
  end
  answer[index] = raised and 1 or 0
end
return answer

-- KEYS: the row, the set of processed event ids. ARGV: the new row, the expected version, the event id or nothing.
local expected = tonumber(ARGV[2])
local row = redis.call('GET', KEYS[1])
local found = 0
if row then
  -- Only an object can hold a version; an array is a table too.
  local readable, document = pcall(cjson.decode, row)
  if not readable or not string.find(row, '^%s*{') then
    return redis.error_reply('STM_CORRUPT:1')
  end
  found = document.version
  if type(found) == 'string' and string.find(found, '^%-?%d+$') then
    found = tonumber(found)
  end
  if type(found) ~= 'number' or found ~= math.floor(found) then
    return redis.error_reply('STM_CORRUPT:1')
  end
end
if found ~= expected then
  -- The plain spelling of a number keeps 14 digits only.
  return redis.error_reply('STM_CONFLICT:' .. (row and string.format('%.0f', found) or 'none'))
end
if ARGV[3] ~= '' then
  -- A script is not rolled back, so that SADD may not fail after SET.
  local kind = redis.call('TYPE', KEYS[2]).ok
  if kind ~= 'none' and kind ~= 'set' then
    return redis.error_reply('STM_CORRUPT:2')
  end
end
redis.call('SET', KEYS[1], ARGV[1])
if ARGV[3] ~= '' then
  redis.call('SADD', KEYS[2], ARGV[3])
end
return 1

-- KEYS: the row, the set of processed event ids. ARGV: the new row, the expected version, the event id or nothing.
local row = redis.call('GET', KEYS[1])
local found = nil
if row then
  local readable, document = pcall(cjson.decode, row)
  if not readable or type(document) ~= 'table' then
    return redis.error_reply('STM_CORRUPT:1')
  end
  found = document.version
  if type(found) == 'string' and string.find(found, '^%-?%d+$') then
    found = tonumber(found)
  end
end
local fresh = not row and ARGV[2] == '0'
if not fresh and found ~= tonumber(ARGV[2]) then
  local name = 'none'
  -- The plain spelling of a number keeps 14 digits only.
  if type(found) == 'number' and found == math.floor(found) then
    name = string.format('%.0f', found)
  end
  return redis.error_reply('STM_CONFLICT:' .. name)
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

local function corrupt(at)
  return redis.error_reply('STM_CORRUPT:' .. at)
end
-- The version of a row; nothing if it is none, or has none that can be compared.
local function version_of(row)
  -- Only an object can hold a version; an array is a table too.
  local readable, document = pcall(cjson.decode, row)
  local found = readable and string.find(row, '^%s*{') and document.version
  if type(found) == 'string' and string.find(found, '^%-?%d+$') then
    found = tonumber(found)
  end
  -- A double of 2^53 or more may stand for its neighbour.
  if type(found) ~= 'number' or found ~= math.floor(found) or math.abs(found) >= 2 ^ 53 then
    return nil
  end
  return found
end

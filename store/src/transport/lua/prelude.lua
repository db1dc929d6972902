-- A count of deliveries outlives its lease by a day: one that is left by a worker that does not count must not stay for ever.
local REMEMBERED_MS = 86400000
local function now_ms(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- The plain spelling of a number keeps 14 digits only.
local function whole(number)
  return string.format('%.0f', number)
end
local function holds(key, kind)
  local held = redis.call('TYPE', key).ok
  return held == 'none' or held == kind
end
local function corrupt(key)
  return redis.error_reply('STM_CORRUPT:' .. key)
end
-- The tier that a group is in: a digit, nothing, or false if the hash is not ours.
local function tier_of(priorities, group)
  local tier = redis.pcall('HGET', priorities, group)
  if not tier then
    return nil
  end
  if type(tier) == 'table' or not string.find(tier, '^[0-4]$') then
    return false
  end
  return tier
end

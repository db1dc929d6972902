-- KEYS: the index. ARGV: how many, and the score and the member behind which to begin, or nothing.
-- Replies members and scores in turn.
local index, count = KEYS[1], tonumber(ARGV[1])

-- The order of the server, which is that of bytes; the language's own one may be another.
local function is_behind(left, right)
  local shorter = math.min(#left, #right)
  for at = 1, shorter do
    local difference = string.byte(left, at) - string.byte(right, at)
    if difference ~= 0 then
      return difference > 0
    end
  end
  return #left > #right
end

local first = 0
if ARGV[2] then
  -- Among the entries of that score, the first one behind the member.
  first = redis.call('ZCOUNT', index, '-inf', '(' .. ARGV[2])
  local last = first + redis.call('ZCOUNT', index, ARGV[2], ARGV[2])
  while first < last do
    local middle = math.floor((first + last) / 2)
    local member = redis.call('ZRANGE', index, middle, middle)[1]
    if is_behind(member, ARGV[3]) then
      last = middle
    else
      first = middle + 1
    end
  end
end
return redis.call('ZRANGE', index, first, first + count - 1, 'WITHSCORES')

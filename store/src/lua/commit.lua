-- KEYS: the row; then, of what the commit has, in this order: the processed ids; the outbox' counter and hash; the spawns'
-- counter and hash; the timers; the trace's counter and list.
-- ARGV: the new row, its version, the expected version (empty: no row), the end of the expected row (empty: not known),
-- 1 with an event id, how many events, spawns, timers, the first step that the trace keeps (empty: no step to add; `all`);
-- then the event id, the events, the spawns, a score (empty: remove) and a member for each timer, the step up to its index
-- and from there on; then, or nothing: 1 to keep the id in the index, the id, milliseconds to live (empty: leave as it is, 0:
-- for ever). KEYS after all others: the index if the id is kept in it; the processed ids, the trace's counter and list again
-- if milliseconds are given.
local expected, tail, kept = ARGV[3], ARGV[4], ARGV[9]
local marks, emits, spawns, timers =
  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

-- A row that ends as expected has the expected version; decoding a large one takes longer than all the rest.
if tail == '' or redis.call('GETRANGE', KEYS[1], -#tail, -1) ~= tail then
  local stored = redis.call('GET', KEYS[1])
  if stored then
    local found = version_of(stored)
    if not found then
      return corrupt(1)
    end
    if expected == '' or found ~= tonumber(expected) then
      -- The plain spelling of a number keeps 14 digits only.
      return redis.error_reply('STM_CONFLICT:' .. string.format('%.0f', found))
    end
  elseif expected ~= '' and expected ~= '0' then
    return redis.error_reply('STM_CONFLICT:none')
  end
end

-- A script is not rolled back: whatever could fail among the writes is looked at before the first of them.
local bad, denied
local at = 1

local function may(...)
  if redis.acl_check_cmd and not redis.acl_check_cmd(...) then
    denied = denied or (...)
  end
end

local function take(kind)
  at = at + 1
  local found = redis.call('TYPE', KEYS[at]).ok
  local fits = found == 'none' or found == kind
  if not fits then
    bad = bad or at
  end
  return KEYS[at], fits
end

local function counter()
  local key, fits = take('string')
  local value = fits and redis.call('GET', key) or '0'
  -- With 18 digits it can grow; its digits are kept as text, since a double does not hold them all.
  if #value > 18 or not (value == '0' or string.find(value, '^%-?[1-9]%d*$')) then
    bad = bad or at
  end
  may('INCRBY', key, '1')
  return key, value
end

local processed, outbox_seq, outbox_last, outbox, spawns_seq, spawns_last, spawned, armed, trace_seq, trace_index, trace
may('SET', KEYS[1], '')
if marks == 1 then
  processed = take('set')
  may('SADD', processed, '')
end
if emits > 0 then
  outbox_seq, outbox_last = counter()
  outbox = take('hash')
  may('HSET', outbox, '', '')
end
if spawns > 0 then
  spawns_seq, spawns_last = counter()
  spawned = take('hash')
  may('HSET', spawned, '', '')
end
if timers > 0 then
  armed = take('zset')
  may('ZADD', armed, '0', '')
  may('ZREM', armed, '')
end
if kept ~= '' then
  trace_seq, trace_index = counter()
  trace = take('list')
  may('RPUSH', trace, '')
  may('LTRIM', trace, '0', '0')
end
-- What is kept beside: an index of the ids, a time to live of the row and its companions.
local options = 9 + marks + emits + spawns + 2 * timers + (kept ~= '' and 2 or 0)
local index, now
local lifetime = tonumber(ARGV[options + 3] or '')
if ARGV[options + 1] == '1' then
  index = take('zset')
  may('TIME')
  may('ZADD', index, 'NX', '0', '')
  now = redis.call('TIME')
end
if lifetime then
  may('PEXPIRE', KEYS[1], '1')
  may('PERSIST', KEYS[at + 1])
end
if bad then
  return corrupt(bad)
end
if denied then
  return redis.error_reply('NOPERM this user may not run ' .. denied .. ' on a key of the commit')
end

local arg = 9 + marks
local first_timer = arg + emits + spawns
for timer = 1, timers do
  local score = ARGV[first_timer + 2 * timer - 1]
  local time = tonumber(score)
  if score ~= '' and (not time or time ~= time or math.abs(time) == math.huge) then
    return redis.error_reply('ERR time of a timer is not finite')
  end
end

local reply = { ARGV[2] }

local function file(seq, last, hash, count)
  local exact = #last < 16
  if exact and count > 0 then
    last = redis.call('INCRBY', seq, count) - count
  end
  for entry = 1, count do
    local number
    if exact then
      number = string.format('%.0f', last + entry)
    else
      redis.call('INCRBY', seq, 1)
      number = redis.call('GET', seq)
    end
    redis.call('HSET', hash, number, ARGV[arg + entry])
    reply[#reply + 1] = number
  end
  arg = arg + count
end

redis.call('SET', KEYS[1], ARGV[1])
if emits > 0 then
  file(outbox_seq, outbox_last, outbox, emits)
end
if marks == 1 then
  redis.call('SADD', processed, ARGV[10])
end
if spawns > 0 then
  file(spawns_seq, spawns_last, spawned, spawns)
end
for _ = 1, timers do
  local score, member = ARGV[arg + 1], ARGV[arg + 2]
  arg = arg + 2
  if score == '' then
    redis.call('ZREM', armed, member)
  else
    redis.call('ZADD', armed, score, member)
  end
end
if kept ~= '' then
  redis.call('INCRBY', trace_seq, 1)
  redis.call('RPUSH', trace, ARGV[arg + 1] .. trace_index .. ARGV[arg + 2])
  if kept ~= 'all' then
    redis.call('LTRIM', trace, kept, -1)
  end
end
if index then
  redis.call('ZADD', index, 'NX', now[1] .. '.' .. string.rep('0', 6 - #now[2]) .. now[2], ARGV[options + 2])
end
if lifetime then
  -- SET has taken the row's own away.
  if lifetime > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[options + 3])
  end
  for companion = at + 1, at + 3 do
    if lifetime > 0 then
      redis.call('PEXPIRE', KEYS[companion], ARGV[options + 3])
    else
      redis.call('PERSIST', KEYS[companion])
    end
  end
end
return reply

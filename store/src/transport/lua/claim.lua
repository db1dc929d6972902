-- KEYS: the tiers that count, lowest first. ARGV: the present or nothing, the token, the visibility in milliseconds, what
-- the keys of queues, of locks and of counts of deliveries begin with (the last one empty: they are not counted).
local PAGE, MOST = 8, 1024
local now = now_ms(ARGV[1])
local best, foreign
local empty, locked = {}, {}
local unseen = false

-- Of a key that is not declared. While its slot moves it may be elsewhere, or not be: the server tells the two apart for declared
-- keys only. Nothing is written by then, so that the whole may be tried again.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and string.find(answer.err or '', 'non local key', 1, true) then
    error({ err = 'TRYAGAIN a key of a queue is in a slot that moves' })
  end
  return answer
end

-- What the group's keys say about it: whether it can win, or who is to hear of it.
local function consider(tier, index, group, score)
  local lock, queue = ARGV[5] .. group, ARGV[4] .. group
  local held = ask('GET', lock)
  if type(held) == 'table' then
    foreign = foreign or lock
    return false
  end
  if held then
    local left = ask('PTTL', lock)
    if left < 0 then
      foreign = foreign or lock
    else
      table.insert(locked, { tier, group, now + left })
    end
    return false
  end
  local head = ask('LINDEX', queue, 0)
  if type(head) == 'table' then
    foreign = foreign or queue
    return false
  end
  if not head then
    table.insert(empty, { tier, group })
    return false
  end
  local tries = ARGV[6] ~= '' and ARGV[6] .. group
  local count = tries and ask('GET', tries)
  if type(count) == 'table' then
    foreign = foreign or tries
    return false
  end
  best = {
    tier = tier, index = index, group = group, score = score, head = head, lock = lock, tries = tries, count = count,
  }
  return true
end

for index, tier in ipairs(KEYS) do
  local seen, done = 0, false
  while not done do
    local page = redis.pcall('ZRANGEBYSCORE', tier, '-inf', whole(now), 'WITHSCORES', 'LIMIT', seen, PAGE)
    if page.err then
      return { 'corrupt', tier }
    end
    for at = 1, #page, 2 do
      local score = tonumber(page[at + 1]) or 0
      if (best and score >= best.score) or consider(tier, index, page[at], score) then
        done = true
        break
      end
    end
    seen = seen + PAGE
    if #page < 2 * PAGE then
      done = true
    elseif seen >= MOST then
      done, unseen = true, true
    end
  end
end

local next
local function sooner(moment)
  if moment < 2 ^ 53 and not (next and next <= moment) then
    next = moment
  end
end
if not best then
  -- Whoever is to come later is locked until then. One without a lock was put off by a worker with a wrong clock.
  for index, tier in ipairs(KEYS) do
    local page = redis.call('ZRANGEBYSCORE', tier, '(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
    for at = 1, #page, 2 do
      local left = ask('PTTL', ARGV[5] .. page[at])
      if left >= 0 then
        sooner(now + left)
      elseif left == -2 and consider(tier, index, page[at], 0) then
        break
      end
    end
    if best then
      break
    end
  end
end

for _, group in ipairs(empty) do
  redis.call('ZREM', group[1], group[2])
end
-- A locked group that is due fills the window of everybody. It comes back when its lock ends.
for _, group in ipairs(locked) do
  redis.call('ZADD', group[1], 'XX', whole(group[3]), group[2])
  sooner(group[3])
end
if best then
  -- Where memory is short a script may go on writing once it has begun: whoever drains a queue makes room.
  redis.call('DEL', best.lock)
  redis.call('SET', best.lock, ARGV[2], 'PX', ARGV[3])
  redis.call('ZADD', best.tier, whole(now + ARGV[3]), best.group)
  local delivery = ''
  if best.tries then
    -- A worker that counts nothing may have taken the event off for which this was the count.
    local digest = redis.sha1hex(best.head)
    local before, counted = string.match(best.count or '', '^(%d+):(%x+):?$')
    delivery = whole(counted == digest and math.min(before, 999999999) + 1 or 1)
    redis.call('SET', best.tries, delivery .. ':' .. digest, 'PX', whole(ARGV[3] + REMEMBERED_MS))
  end
  return { 'lease', best.index, best.group, best.head, delivery }
end
if foreign then
  return { 'corrupt', foreign }
end
if unseen then
  next = now
end
return { 'none', whole(now), next and whole(next) or '' }

-- Throttles: named limits for all jobs of the namespace that name them. The rules are described in
-- qmodel/model/state/throttles.py.
--
-- The limits of a throttle and the level of its bucket are one text. The queues with a throttle of their own are listed
-- in the text of the options, which every operation reads. What a throttle remembers under its family is a text of its
-- own: the generation, the level of its bucket, the time of that level, and the time at which it may be forgotten.

local throttles = {}

throttles.OWN = 'queue/'
throttles.NEVER = 99999999999999

local LIMITS = {'concurrency', 'rate', 'rate_ms', 'capacity', 'refill', 'refill_ms'}
local STATE = '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)$'
local UNDER = '^(%d+)\t(%d+)\t(%d+)\t(%d+)$'
local SWEEP = 2
local UNSET = '0\t0\t0\t0\t0\t0\t0\t0'

local function key(name, part)
  return keys.throttle(name, part)
end

local function decoded(text)
  local concurrency, rate, rate_ms, capacity, refill, refill_ms, level, level_at = string.match(text, STATE)
  return {
    concurrency = tonumber(concurrency), rate = tonumber(rate), rate_ms = tonumber(rate_ms),
    capacity = tonumber(capacity), refill = tonumber(refill), refill_ms = tonumber(refill_ms),
    level = tonumber(level), level_at = tonumber(level_at), cools_at = 0,
  }
end

-- A throttle with the limits of its family. What it remembers of an earlier generation does not count.
local function under(name, family)
  local throttle = decoded(store.read(key(family[1], '-state')))
  local text = store.read(key(name, '-family'))
  throttle.family, throttle.generation, throttle.known = family[1], family[2], text and true
  throttle.level, throttle.level_at, throttle.fresh = throttle.capacity * throttle.refill_ms, 0, true
  local generation, level, level_at, cools_at = string.match(text or '', UNDER)
  if generation == family[2] then
    throttle.level, throttle.level_at, throttle.cools_at = tonumber(level), tonumber(level_at), tonumber(cools_at)
    throttle.fresh = false
  end
  return throttle
end

-- A throttle to read, with the limits of its family if it has none of its own.
function throttles.of(name)
  local text = store.read(key(name, '-state'))
  local family = not text and families.of(name)
  return family and under(name, family) or decoded(text or UNSET)
end

-- The family that limits a throttle, or empty.
function throttles.family(name)
  return throttles.of(name).family or ''
end

-- List a throttle among those in use.
function throttles.made(name)
  writes.put_off('ZADD', keys['throttles-used'], 0, name)
end

-- Take a throttle without jobs, queues and anything to remember off that list.
function throttles.forget_if_empty(name)
  if writes.fetch('ZCARD', key(name, '-held')) == 0 and writes.fetch('ZCARD', key(name, '-queues')) == 0
    and not store.read(key(name, '-family')) then
    writes.put_off('ZREM', keys['throttles-used'], name)
  end
end

-- Whether a throttle without parked jobs leaves the list with its last job, for a completion in the plain case.
function throttles.rests_plain(name)
  return writes.fetch('ZCARD', key(name, '-held')) == 1 and not store.read(key(name, '-family'))
end

-- Whether a throttle has any limit.
function throttles.is_set(throttle)
  return throttle.concurrency > 0 or throttle.rate > 0 or throttle.capacity > 0
end

-- All limits of a throttle.
function throttles.limits(throttle)
  local found = {}
  for i, limit in ipairs(LIMITS) do
    found[i] = throttle[limit]
  end
  return found
end

local function write(name, throttle)
  local texts = {}
  for i, number in ipairs(throttles.limits(throttle)) do
    texts[i] = store.text(number)
  end
  texts[#texts + 1] = store.text(throttle.level)
  texts[#texts + 1] = store.text(throttle.level_at)
  store.write(key(name, '-state'), table.concat(texts, '\t'))
end

-- The name of a queue's own throttle, or false if it has none.
function throttles.own(queue)
  return config.owns(queue) and throttles.OWN .. queue
end

-- The queue that this throttle is the own throttle of, or false.
function throttles.queue_of(name)
  return #name > #throttles.OWN and string.sub(name, 1, #throttles.OWN) == throttles.OWN
    and string.sub(name, #throttles.OWN + 1)
end

-- The throttles that a job names.
function throttles.named(job)
  local found, met = {}, {}
  local names = options.get(job, 'throttles')
  if not names then
    return found
  end
  for name in string.gmatch(names, '%S+') do
    if not met[name] then
      met[name] = true
      found[#found + 1] = name
    end
  end
  return found
end

-- The throttles that a job names and counts in while it is leased: all that were not released.
function throttles.counted(job)
  local released = options.get(job, 'released')
  if not released then
    return throttles.named(job)
  end
  local gone, found = {}, {}
  for name in string.gmatch(released, '%S+') do
    gone[name] = true
  end
  for _, name in ipairs(throttles.named(job)) do
    if not gone[name] then
      found[#found + 1] = name
    end
  end
  return found
end

-- Let a job that is in no list count no more in a throttle, until its next claim.
function throttles.release(job, name)
  local before = options.get(job, 'released')
  options.set(job, 'released', before and before .. ' ' .. name or name)
end

-- All throttles that a job passes: those that it names, and its queue's own.
function throttles.passed_by(job)
  local found = throttles.named(job)
  local mine = throttles.own(job.queue)
  if mine then
    found[#found + 1] = mine
  end
  return found
end

-- The tokens that a claim of a job takes.
function throttles.cost(job)
  return tonumber(options.get(job, 'cost') or 1)
end

-- ---- limits

local function ceiling(number, by)
  return math.floor((number + by - 1) / by)
end

-- The level of a bucket at a given time.
local function level(throttle, now)
  if throttle.capacity == 0 then
    return 0
  end
  local missing = throttle.capacity * throttle.refill_ms - throttle.level
  local elapsed = now - throttle.level_at
  if elapsed <= 0 then
    return throttle.level
  elseif elapsed >= ceiling(missing, throttle.refill) then
    return throttle.level + missing
  end
  return throttle.level + elapsed * throttle.refill
end

-- Convert a level to units of another `refill_ms`: whole tokens apart, so that all products are exact.
local function converted(level_, was_ms, refill_ms)
  return math.floor(level_ / was_ms) * refill_ms + math.floor(level_ % was_ms * refill_ms / was_ms)
end

-- Set all limits of a throttle. A new bucket is full; an existing one keeps its tokens, up to the new capacity.
-- Say whether that changes any.
function throttles.assign(now, op)
  throttles.cool(op.throttle)
  local throttle = decoded(store.read(key(op.throttle, '-state')) or UNSET)
  local before = table.concat(throttles.limits(throttle), ' ')
  local level_, was_ms = level(throttle, now), throttle.refill_ms
  if not throttles.is_set(throttle) then
    writes.put_off('ZADD', keys.throttles, 0, op.throttle)
  end
  for _, limit in ipairs(LIMITS) do
    throttle[limit] = op[limit] or 0
  end
  local full = throttle.capacity * throttle.refill_ms
  throttle.level = was_ms > 0 and math.min(converted(level_, was_ms, throttle.refill_ms), full) or full
  throttle.level_at = throttle.capacity > 0 and math.max(throttle.level_at, now) or 0
  if throttle.rate == 0 then
    store.write(key(op.throttle, '-claims'), false)
  end
  write(op.throttle, throttle)
  local queue = throttles.queue_of(op.throttle)
  if queue then
    config.set_own(queue, true)
  end
  return table.concat(throttles.limits(throttle), ' ') ~= before
end

-- Remove all limits of a throttle; say whether it had any.
function throttles.clear(name)
  if not store.read(key(name, '-state')) then
    return false
  end
  store.write(key(name, '-state'), false)
  store.write(key(name, '-claims'), false)
  writes.put_off('ZREM', keys.throttles, name)
  local queue = throttles.queue_of(name)
  if queue then
    config.set_own(queue, false)
  end
  families.drop(name)
  return true
end

-- A page of the throttles that have limits, by name.
function throttles.listed(offset, count)
  return writes.fetch('ZRANGE', keys.throttles, offset, offset + count - 1)
end

-- The set of the jobs that count against the concurrency of a throttle.
local function held(name)
  local queue = throttles.queue_of(name)
  return queue and keys.queue(queue, '-locks') or key(name, '-held')
end

-- How many jobs count against the concurrency of a throttle.
function throttles.running(name)
  return writes.fetch('ZCARD', held(name))
end

-- Whether a throttle may open although no job leaves it: with time, without a limit, or because no job holds it.
function throttles.opens_alone(name)
  local throttle = throttles.of(name)
  return throttle.rate > 0 or throttle.capacity > 0 or throttle.concurrency == 0 or throttles.running(name) == 0
end

-- The first of these jobs.
function throttles.holders(name, most)
  local found = writes.fetch('ZRANGE', held(name), 0, most - 1)
  if throttles.queue_of(name) then
    for i, member in ipairs(found) do
      found[i] = keys.jid_of(member)
    end
  end
  return found
end

-- ---- opening

-- How many claims are in the window; without a rate there is none.
function throttles.used(name, throttle, now)
  if throttle.fresh or throttle.rate == 0 then
    return 0
  end
  return writes.fetch('ZCOUNT', key(name, '-claims'), '(' .. now - throttle.rate_ms, '+inf')
end

-- When the window has room for one more claim.
local function window_opens(name, throttle, now, count)
  local surplus = throttles.used(name, throttle, now) + count - throttle.rate
  if surplus < 0 then
    return now
  end
  local after = '(' .. now - throttle.rate_ms
  local first = throttle.fresh and {}
    or writes.fetch('ZRANGEBYSCORE', key(name, '-claims'), after, '+inf', 'WITHSCORES', 'LIMIT', surplus, 1)
  return tonumber(first[2] or now) + throttle.rate_ms
end

-- When the bucket has enough tokens.
local function bucket_opens(throttle, now, cost, spent)
  local tokens = math.min(math.min(cost, throttle.capacity) + spent, 2 * throttle.capacity) -- bounds the products
  local missing = tokens * throttle.refill_ms - level(throttle, now)
  return missing > 0 and math.max(now, throttle.level_at) + ceiling(missing, throttle.refill) or now
end

-- When a claim of this cost may pass a throttle, after others: now, later, or never by itself. A job that already
-- `holds` the throttle does not count again.
function throttles.opens_at(now, name, cost, before, holds)
  local throttle = throttles.of(name)
  local count, spent = before[1], before[2]
  if throttle.concurrency > 0 and not holds and throttles.running(name) + count >= throttle.concurrency then
    return throttles.NEVER
  end
  local window = throttle.rate > 0 and window_opens(name, throttle, now, count) or now
  return math.max(window, throttle.capacity > 0 and bucket_opens(throttle, now, cost, spent) or now)
end

-- Whether a throttle has room for one more job, and no limit but that of concurrency; and whether it is in use already, if
-- that is known.
function throttles.is_open_plain(name)
  local throttle = throttles.of(name)
  if throttle.rate > 0 or throttle.capacity > 0 then
    return false
  elseif throttle.concurrency == 0 then
    return true
  end
  local count = throttles.running(name)
  return count < throttle.concurrency, count > 0
end

-- The tokens that a claim takes from a throttle: at most the capacity.
function throttles.taken(name, cost)
  local throttle = throttles.of(name)
  return math.min(cost, throttle.capacity)
end

local function forget_claims(name)
  writes.put_off('ZREMRANGEBYSCORE', key(name, '-claims'), '-inf', '+inf')
end

-- Forget the window and the bucket that a throttle has under its family, if it has them.
function throttles.cool(name)
  if store.read(key(name, '-family')) then
    writes.put_off('ZREM', keys.cooling, name)
    store.write(key(name, '-family'), false)
    forget_claims(name)
    throttles.forget_if_empty(name)
  end
end

-- Remember the window and the bucket of a throttle that follows its family, until they are empty and full again.
local function remember(now, name, throttle)
  local missing = throttle.capacity * throttle.refill_ms - throttle.level
  local full = missing > 0 and throttle.level_at + ceiling(missing, throttle.refill) or 0
  local cools_at = math.max(throttle.cools_at, now + throttle.rate_ms, full)
  local texts = {throttle.generation, store.text(throttle.level), store.text(throttle.level_at), store.text(cools_at)}
  store.write(key(name, '-family'), table.concat(texts, '\t'))
  writes.put_off('ZADD', keys.cooling, cools_at, name)
  throttles.made(name)
  for _, other in ipairs(writes.fetch('ZRANGEBYSCORE', keys.cooling, '-inf', now, 'LIMIT', 0, SWEEP)) do
    throttles.cool(other)
  end
end

-- Enter a claim into the window, and take its tokens from the bucket.
function throttles.spend(now, name, cost, token)
  local throttle = throttles.of(name)
  if throttle.fresh and throttle.known and (throttle.rate > 0 or throttle.capacity > 0) then
    forget_claims(name)
  end
  if throttle.rate > 0 then
    writes.put_off('ZREMRANGEBYSCORE', key(name, '-claims'), '-inf', now - throttle.rate_ms)
    writes.put_off('ZADD', key(name, '-claims'), now, keys.member(epochs.claim(token), ''))
  end
  if throttle.capacity > 0 then
    throttle.level = level(throttle, now) - math.min(cost, throttle.capacity) * throttle.refill_ms
    throttle.level_at = math.max(throttle.level_at, now)
  end
  if throttle.family and (throttle.rate > 0 or throttle.capacity > 0) then
    remember(now, name, throttle)
  elseif throttle.capacity > 0 then
    write(name, throttle)
  end
end

-- Whether no token is missing in the bucket, if there is one.
function throttles.is_full(throttle, now)
  return level(throttle, now) == throttle.capacity * throttle.refill_ms
end

-- How many whole tokens are in the bucket.
function throttles.tokens(throttle, now)
  return throttle.capacity > 0 and math.floor(level(throttle, now) / throttle.refill_ms) or 0
end

-- Finding and mending what a step cannot mend by itself: for `qmodel doctor`, which calls repair.examine and repair.mend.
--
-- A problem is a list: its kind, its key, and facts of the kind:
--
--   pending  a command of an earlier step that failed, and that the next call will try: the command
--   type     another program's value under one of our names: the expected type, and the type found
--   behind   the counters are behind the stream of events: their sequence, and that of the stream
--   missing  a list has the id of a job whose record is missing: the list, and the member
--   dropped  a call has dropped such an id: nothing more
--
-- Lists are examined at their beginning, where calls meet their members.

local repair = {}

local SOME = 10 -- members of a list that are examined

local ALONE = {
  {'counters', 'string'}, {'config', 'string'}, {'intent', 'string'}, {'events', 'stream'}, {'journal', 'stream'},
  {'journaled', 'string'}, {'journal-heavy', 'string'}, {'workers-passed', 'string'}, {'requests', 'hash'}, {'uniques', 'hash'},
  {'subscriptions', 'hash'}, {'cascade', 'zset'}, {'queues', 'zset'}, {'workers', 'zset'}, {'completed', 'zset'},
  {'failed', 'zset'}, {'failures', 'zset'}, {'tags', 'zset'}, {'tracked', 'zset'}, {'s', 'zset'}, {'s-minutes', 'zset'},
  {'requests-order', 'zset'}, {'recur-crons', 'zset'}, {'throttles', 'zset'}, {'throttles-used', 'zset'},
  {'unique-ends', 'zset'},
  {'messages', 'zset'}, {'keeping', 'zset'}, {'dropped', 'zset'},
  {'families', 'string'}, {'cooling', 'zset'},
}

local OF_QUEUE = {
  {'-state', 'string'}, {'-pauses', 'hash'}, {'-wake', 'list'}, {'-recur', 'zset'}, {'-gates', 'zset'},
  {'-work', 'zset', 29}, {'-scheduled', 'zset', 15}, {'-depends', 'zset', 15}, {'-throttled', 'zset', 15},
  {'-locks', 'zset', 15}, {'-expires', 'zset', 15}, {'-ends', 'zset'},
}

local OF_THROTTLE = {{'-state', 'string'}, {'-claims', 'zset'}, {'-queues', 'zset'}, {'-held', 'zset', 1}}

local JOBS = {completed = 15, failed = 15, keeping = 15} -- where the job's id begins in a member

-- Which type the key of a kept command has.
local TYPES = {
  ZADD = 'zset', ZREM = 'zset', ZINCRBY = 'zset', ZREMRANGEBYSCORE = 'zset', HSET = 'hash', HDEL = 'hash',
  HINCRBY = 'hash', RPUSH = 'list', LTRIM = 'list', XADD = 'stream', XTRIM = 'stream',
}

local found -- the problems
local known -- the keys of a wrong type among them

local function add(...)
  found[#found + 1] = {...}
end

local function missing(list, members, begins)
  for _, member in ipairs(members) do
    local jid = begins == 29 and keys.ready_jid_of(member) or begins == 15 and keys.jid_of(member) or member
    local key = keys.job(jid)
    if redis.call('EXISTS', key) == 0 then
      add('missing', key, list, member, 'ZREM')
    end
  end
end

-- Whether a key is of the expected type, or absent.
local function is_fine(key, expected)
  local kind = redis.call('TYPE', key)
  kind = type(kind) == 'table' and kind.ok or kind
  if kind ~= expected and kind ~= 'none' and not known[key] then
    known[key] = true
    add('type', key, expected, kind)
  end
  return kind == expected
end

local function examine_one(key, expected, begins, most)
  if is_fine(key, expected) and begins then
    missing(key, redis.call('ZRANGE', key, 0, most - 1), begins)
  end
end

-- The names in a sorted set; none if it is of another type.
local function names(key)
  local kind = redis.call('TYPE', key)
  return (type(kind) == 'table' and kind.ok or kind) == 'zset' and redis.call('ZRANGE', key, 0, catalogue.most - 1) or {}
end

local function examine_worker(name, most)
  local key = keys.worker(name)
  local held = is_fine(key, 'hash') and redis.call('HKEYS', key) or {}
  for i = 1, math.min(#held, most) do
    local job_key = string.sub(held[i], 1, 1) == 'j' and keys.job(string.sub(held[i], 2))
    if job_key and redis.call('EXISTS', job_key) == 0 then
      add('missing', job_key, key, held[i], 'HDEL')
    end
  end
end

local function examine_types(most)
  for _, one in ipairs(ALONE) do
    examine_one(keys.alone(one[1]), one[2], JOBS[one[1]], most)
  end
  for _, name in ipairs(names(keys.queues)) do
    for _, one in ipairs(OF_QUEUE) do
      examine_one(keys.queue(name, one[1]), one[2], one[3], most)
    end
  end
  for _, name in ipairs(names(keys.throttles)) do
    for _, one in ipairs(OF_THROTTLE) do
      examine_one(keys.throttle(name, one[1]), one[2], one[3], most)
    end
  end
  for _, name in ipairs(names(keys.workers)) do
    examine_worker(name, most)
  end
end

local function examine_pending()
  for _, words in ipairs(store.pending and intent.kept() or {}) do
    if TYPES[words[1]] then
      is_fine(words[2], TYPES[words[1]])
    end
    add('pending', words[2] or '', words[1])
  end
end

-- All problems; `most` members of each list are examined.
local function problems(most)
  found, known = {}, {}
  examine_types(most)
  if known[keys.counters] or known[keys.events] or known[keys.intent] then
    return found
  end
  store.open()
  examine_pending()
  local top = writes.top()
  if store.seq < top then
    add('behind', keys.counters, store.text(store.seq), store.text(top))
  end
  if not known[keys.dropped] then
    for _, key in ipairs(redis.call('ZRANGE', keys.dropped, 0, most - 1)) do
      add('dropped', key)
    end
  end
  return found
end

-- The problems of the namespace, at most a few of each list.
function repair.examine(prefix)
  keys.begin(prefix)
  store.begin(0, '0')
  return problems(SOME)
end

-- Rename a key that is not ours: `<p>aside:<name>`, with a `+` for each that is there already.
local function put_aside(key)
  local name = keys.aside(key)
  while redis.call('EXISTS', name) == 1 do
    name = name .. '+'
  end
  redis.call('RENAME', key, name)
  return name
end

-- Do the kept commands, and raise a sequence that is behind.
local function catch_up()
  store.begin(0, '0')
  store.open()
  records.begin()
  local left = store.pending and intent.mend(false) or {}
  local top, epoch = writes.top()
  if store.seq < top and not left[1] then
    store.seq = top
    if tonumber(epoch) > tonumber(store.epoch) then
      store.set_epoch(epoch)
    end
    store.flush()
  end
  return left
end

-- Mend the problems; give them, each with what was done as its last fact.
function repair.mend(prefix)
  keys.begin(prefix)
  store.begin(0, '0')
  local done, aside = {}, {}
  for _, one in ipairs(problems(catalogue.most)) do
    if one[1] == 'type' then
      aside[one[2]] = true
      one[5] = put_aside(one[2])
      done[#done + 1] = one
    end
  end
  store.unknown()
  queues.unknown()
  local still = {}
  for _, words in ipairs(catch_up()) do
    still[words[2]] = true
  end
  for _, one in ipairs(found) do
    if one[1] == 'missing' and not aside[one[3]] then
      redis.call(one[5], one[3], one[4])
    elseif one[1] == 'dropped' then
      redis.call('ZREM', keys.dropped, one[2])
    end
    if one[1] ~= 'type' and not (one[1] == 'pending' and still[one[2]]) then
      done[#done + 1] = one
    end
  end
  return done
end

-- Storage under all nouns: Redis, behind a gatherer of writes.
--
-- What an operation names is read with one MGET before it begins. The texts that it changes are written with one MSET at
-- its end, and what it sets in a hash with one HSET. An operation on many jobs gathers its other writes too, and makes
-- one variadic call of all that concerns one key: a step of a hundred jobs costs about as many commands as a step of
-- one. Reading a sorted set or a hash first writes what was gathered for it. (For one job gathering would cost more than
-- it saves: then a sorted set is written at once.)
--
-- Of what is gathered for one key, removals are written before additions: a job is lifted out of a place before it is put
-- into one, and nothing is lifted again in the same step without a read between.
--
-- All of this is forgotten when the next operation begins: nothing is kept from call to call.

local store = {}

local DEFAULT_EVENTS = '10000' -- as text, for it is needed with every event
local CHUNK = 2000 -- values in one variadic call; Lua unpacks at most 7999

-- Numbers are what is dear here: to read one from text, or to write one, costs as much as making a table. So the moment
-- comes with its text, and what is text already stays so.
function store.begin(now, text, many)
  store.many = many -- whether writes are gathered
  store.numbers = {[0] = '0', [now] = text} -- number -> its text, of those that were needed
  store.texts = nil -- key -> text, or false where there is none
  store.written, store.gone = nil, nil -- keys and texts to write; keys to delete
  store.added, store.removed = nil, nil -- key of a sorted set -> scores and members; members
  store.set, store.dropped = nil, nil -- key of a hash -> fields and values; fields
  store.jobs = {} -- jid -> decoded record, or false
  store.queues = {} -- name -> what is known of a queue
  store.durations = nil -- what state/stats.lua gathers
  store.seen = nil -- worker -> when last seen, where that was read
  store.seq, store.known_bounds = nil, nil
end

-- A whole number as text, made once in an operation: a number costs Redis, and us, more than a third of a microsecond
-- each time that it is written.
function store.text(number)
  local text = store.numbers[number]
  if not text then
    text = string.format('%d', number)
    store.numbers[number] = text
  end
  return text
end

local function call_in_chunks(command, key, values)
  local size = #values
  if size <= CHUNK then
    return redis.call(command, key, unpack(values))
  end
  for first = 1, size, CHUNK do
    redis.call(command, key, unpack(values, first, math.min(first + CHUNK - 1, size)))
  end
end

local function gather(kind, key, value)
  local all = store[kind] or {}
  store[kind] = all
  local of = all[key]
  if of then
    of[#of + 1] = value
  else
    all[key] = {value}
  end
end

local function gather_pair(kind, key, one, two)
  local all = store[kind] or {}
  store[kind] = all
  local of = all[key]
  if of then
    local size = #of
    of[size + 1] = one
    of[size + 2] = two
  else
    all[key] = {one, two}
  end
end

-- ---- texts

-- Read texts with one command; the first time, at the beginning of an operation, into a table of the right size.
function store.prefetch(wanted)
  local found = redis.call('MGET', unpack(wanted))
  local texts, first = store.texts, 1
  if not texts then
    texts = {
      [wanted[1]] = found[1], [wanted[2]] = found[2], [wanted[3] or 3] = found[3], [wanted[4] or 4] = found[4],
    }
    store.texts, first = texts, 5
  end
  for i = first, #wanted do
    texts[wanted[i]] = found[i]
  end
end

function store.read(key)
  local text = store.texts[key]
  if text == nil then
    text = redis.call('GET', key)
    store.texts[key] = text
  end
  return text
end

-- Write a text, or false to delete the key, whatever its type.
function store.write(key, text)
  store.texts[key] = text
  if text then
    local written = store.written
    if written then
      local size = #written
      written[size + 1] = key
      written[size + 2] = text
    else
      store.written = {key, text}
    end
  else
    store.gone = store.gone or {}
    store.gone[#store.gone + 1] = key
  end
end

-- What was written before its key was deleted. (What was deleted before it was written is written after.)
local function without_deleted(written)
  local left = {}
  for i = 1, #written, 2 do
    if store.texts[written[i]] then
      left[#left + 1] = written[i]
      left[#left + 1] = written[i + 1]
    end
  end
  return left
end

-- Of several texts for one key MSET keeps the last, as it should.
local function flush_texts()
  local written = store.written or {}
  if store.gone then
    for first = 1, #store.gone, CHUNK do
      redis.call('DEL', unpack(store.gone, first, math.min(first + CHUNK - 1, #store.gone)))
    end
    written = without_deleted(written)
  end
  for first = 1, #written, CHUNK do
    redis.call('MSET', unpack(written, first, math.min(first + CHUNK - 1, #written)))
  end
end

-- ---- sorted sets

function store.add(key, score, member)
  score = store.numbers[score] or score
  if store.many then
    gather_pair('added', key, score, member)
  else
    redis.call('ZADD', key, score, member)
  end
end

function store.remove(key, member)
  if store.many then
    gather('removed', key, member)
  else
    redis.call('ZREM', key, member)
  end
end

local function flush(all, command)
  if all then
    for key, values in pairs(all) do
      call_in_chunks(command, key, values)
    end
  end
end

local function settle(all, command, key)
  local values = all and all[key]
  if values then
    all[key] = nil
    call_in_chunks(command, key, values)
  end
end

-- Call a command that reads a sorted set, after what was gathered for it is written.
function store.sorted(command, key, ...)
  if store.many then
    settle(store.removed, 'ZREM', key)
    settle(store.added, 'ZADD', key)
  end
  return redis.call(command, key, ...)
end

-- ---- hashes

function store.set_field(key, field, value)
  gather_pair('set', key, field, store.numbers[value] or value)
end

-- Drop a field, and another if there is one.
function store.drop_fields(key, one, two)
  if not store.many and not store.set then
    redis.call('HDEL', key, one, two)
  else
    gather('dropped', key, one)
    gather('dropped', key, two)
  end
end

-- Call a command that reads a hash, after what was gathered for it is written.
function store.hashed(command, key, ...)
  settle(store.dropped, 'HDEL', key)
  settle(store.set, 'HSET', key)
  return redis.call(command, key, ...)
end

-- ---- counters: `<sequence of the last event> <bounds>`

local function count()
  local text = store.read(keys.counters) or '0\t0\t1\t0\t0'
  local seq = string.match(text, '^%d+')
  store.seq, store.bounds_text = tonumber(seq), string.sub(text, #seq + 2)
end

-- The sequence of the last event.
function store.last()
  if not store.seq then
    count()
  end
  return store.seq
end

-- How many jobs are tracked; the first event that is still kept; the sequence and the moment before which no complete
-- job can be past keeping (state/completed.lua).
function store.bounds()
  if not store.known_bounds then
    store.last()
    local tracked, first_event, sweep_seq, sweep_at = string.match(store.bounds_text, '^(%d+)\t(%d+)\t(%d+)\t(%d+)$')
    store.known_bounds = {
      tracked = tonumber(tracked), first_event = tonumber(first_event),
      sweep_seq = tonumber(sweep_seq), sweep_at = tonumber(sweep_at),
    }
  end
  return store.known_bounds
end

-- Set one of the bounds.
function store.bound(name, value)
  local bounds = store.bounds()
  bounds[name] = value
  store.bounds_text = table.concat({bounds.tracked, bounds.first_event, bounds.sweep_seq, bounds.sweep_at}, '\t')
end

function store.tracks_any()
  store.last()
  return string.sub(store.bounds_text, 1, 2) ~= '0\t'
end

local function flush_counters()
  local text = store.text(store.seq) .. '\t' .. store.bounds_text
  if text ~= store.texts[keys.counters] then
    store.write(keys.counters, text)
  end
end

-- ---- events: one field, `e`: the moment, what, and its facts, with tabs between

-- Facts with tabs between. One concatenation, whatever their number: a table and table.concat would cost thrice as much.
local function join(a, b, c, d, e, f, g)
  if not c then
    return b and a .. '\t' .. b or a
  elseif not e then
    return d and a .. '\t' .. b .. '\t' .. c .. '\t' .. d or a .. '\t' .. b .. '\t' .. c
  elseif not g then
    return a .. '\t' .. b .. '\t' .. c .. '\t' .. d .. '\t' .. e .. (f and '\t' .. f or '')
  end
  return a .. '\t' .. b .. '\t' .. c .. '\t' .. d .. '\t' .. e .. '\t' .. f .. '\t' .. g
end

-- Append an event, and give its sequence.
function store.emit(now, event, one, two, three, four, five, six, seven)
  local seq = store.last() + 1
  store.seq = seq
  local numbers = store.numbers
  local facts = join(one, numbers[two] or two, numbers[three] or three, numbers[four] or four, numbers[five] or five,
    six, seven)
  local said = numbers[now] .. '\t' .. event .. '\t' .. facts
  local most = store.texts[keys.config] and config.text('max-events') or DEFAULT_EVENTS
  redis.call('XADD', keys.events, 'MAXLEN', '~', most, store.text(seq) .. '-0', 'e', said)
  return seq
end

-- Keep this many events from now on, and never show again those that have fallen out, or fall out now.
function store.keep_events(most)
  local kept = math.min(most, config.value('max-events'))
  store.bound('first_event', math.max(store.bounds().first_event, store.last() - kept + 1))
end

-- The events after a sequence number, oldest first; each as its sequence and its text.
function store.events_after(after, count_)
  local kept = store.last() - config.value('max-events') + 1
  local first = math.max(after + 1, store.bounds().first_event, kept)
  local page = {}
  for i, event in ipairs(redis.call('XRANGE', keys.events, store.text(first) .. '-0', '+', 'COUNT', count_)) do
    page[i] = {string.match(event[1], '^%d+'), event[2][2]}
  end
  return page
end

-- Publish a message of a dialect.
function store.publish(channel, message)
  redis.call('PUBLISH', keys.channel(channel), message)
end

-- ---- the end of an operation

function store.flush()
  records.flush()
  if store.seq then
    flush_counters()
  end
  flush_texts()
  flush(store.removed, 'ZREM')
  flush(store.added, 'ZADD')
  flush(store.dropped, 'HDEL')
  flush(store.set, 'HSET')
end

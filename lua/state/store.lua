-- Storage under all nouns: Redis, behind a gatherer of writes.
--
-- What an operation names is read with one MGET before it begins. What it changes is gathered and written at the end:
-- all texts with one MSET, and each sorted set and hash with one variadic call; so a step of a hundred jobs costs about
-- as many commands as a step of one. Reading a sorted set or a hash first writes what was gathered for it.
--
-- Of what is gathered for one key, removals are written before additions: a job is lifted out of a place before it is put
-- into one, and nothing is lifted again in the same step without a read between.
--
-- All of this is forgotten when the next operation begins: nothing is kept from call to call.

local store = {}

local CHUNK = 2000 -- values in one variadic call; Lua unpacks at most 7999

function store.begin(now)
  store.numbers = {} -- number -> its text, of those that were needed
  store.texts = {} -- key -> text, or false where there is none
  store.written, store.gone = {}, {} -- keys and texts to write; keys to delete
  store.added, store.removed = {}, {} -- key of a sorted set -> scores and members; members
  store.set, store.dropped = {}, {} -- key of a hash -> fields and values; fields
  store.jobs = {} -- jid -> decoded record, or false
  store.queues = {} -- name -> what is known of a queue
  store.durations = nil -- what state/stats.lua gathers
  store.seen = nil -- worker -> when last seen, where that was read
  store.seq, store.bounds_ = nil, nil
  store.text(now)
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

local function gather(all, key, value)
  local of = all[key]
  if of then
    of[#of + 1] = value
  else
    all[key] = {value}
  end
end

local function gather_pair(all, key, one, two)
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

function store.prefetch(wanted)
  local found = redis.call('MGET', unpack(wanted))
  for i = 1, #wanted do
    store.texts[wanted[i]] = found[i]
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
    written[#written + 1] = key
    written[#written + 1] = text
  else
    store.gone[#store.gone + 1] = key
  end
end

-- A key is deleted first and written then, or written and deleted; what it was last is what counts.
local function flush_texts()
  for first = 1, #store.gone, CHUNK do
    redis.call('DEL', unpack(store.gone, first, math.min(first + CHUNK - 1, #store.gone)))
  end
  local set, size = {}, 0
  for i = 1, #store.written, 2 do
    if store.texts[store.written[i]] == store.written[i + 1] then
      set[size + 1], set[size + 2] = store.written[i], store.written[i + 1]
      size = size + 2
    end
  end
  for first = 1, size, CHUNK do
    redis.call('MSET', unpack(set, first, math.min(first + CHUNK - 1, size)))
  end
end

-- ---- sorted sets

function store.add(key, score, member)
  gather_pair(store.added, key, store.numbers[score] or score, member)
end

function store.remove(key, member)
  gather(store.removed, key, member)
end

local function flush(all, command)
  for key, values in pairs(all) do
    call_in_chunks(command, key, values)
  end
end

local function settle(all, command, key)
  local values = all[key]
  if values then
    all[key] = nil
    call_in_chunks(command, key, values)
  end
end

-- Call a command that reads a sorted set, after what was gathered for it is written.
function store.sorted(command, key, ...)
  settle(store.removed, 'ZREM', key)
  settle(store.added, 'ZADD', key)
  return redis.call(command, key, ...)
end

-- ---- hashes

function store.set_field(key, field, value)
  gather_pair(store.set, key, field, store.numbers[value] or value)
end

function store.drop_field(key, field)
  gather(store.dropped, key, field)
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
  local seq, bounds = string.match(text, '^(%d+)\t(.*)$')
  store.seq, store.bounds_text = tonumber(seq), bounds
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
  if not store.bounds_ then
    store.last()
    local tracked, first_event, sweep_seq, sweep_at = string.match(store.bounds_text, '^(%d+)\t(%d+)\t(%d+)\t(%d+)$')
    store.bounds_ = {
      tracked = tonumber(tracked), first_event = tonumber(first_event),
      sweep_seq = tonumber(sweep_seq), sweep_at = tonumber(sweep_at),
    }
  end
  return store.bounds_
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

-- Append an event, and give its sequence.
function store.emit(now, event, one, two, three, four, five, six, seven)
  local seq = store.last() + 1
  store.seq = seq
  local numbers = store.numbers
  local said = {
    store.text(now), event, one, numbers[two] or two, numbers[three] or three, numbers[four] or four, five, six, seven,
  }
  local id = store.text(seq) .. '-0'
  redis.call('XADD', keys.events, 'MAXLEN', '~', config.text('max-events'), id, 'e', table.concat(said, '\t'))
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

-- ---- the end of an operation

function store.flush()
  records.flush()
  if store.seq then
    flush_counters()
  end
  if store.written[1] or store.gone[1] then
    flush_texts()
  end
  flush(store.removed, 'ZREM')
  flush(store.added, 'ZADD')
  flush(store.dropped, 'HDEL')
  flush(store.set, 'HSET')
end

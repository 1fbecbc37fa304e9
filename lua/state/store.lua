-- Storage under all nouns: Redis, behind a gatherer of writes.
--
-- What an operation names is read with one MGET before it begins. What it changes is gathered and written at the end:
-- all texts with one MSET, and each sorted set and hash with one variadic call; so a step of a hundred jobs costs about
-- as many commands as a step of one. Reading a sorted set first writes what was gathered for it.
--
-- Within what is gathered for one key, removals are written before additions: a job is lifted out of a place before it
-- is put into one, and nothing is lifted again in the same step without a read between.
--
-- All of this is forgotten when the next operation begins: nothing is kept from call to call.

local store = {}

local CHUNK = 2000 -- values in one variadic call; Lua unpacks at most 7999

local call_in_chunks = function(command, key, values)
  for first = 1, #values, CHUNK do
    redis.call(command, key, unpack(values, first, math.min(first + CHUNK - 1, #values)))
  end
end

function store.begin(now)
  store.now = now
  store.texts = {} -- key -> text, or false where there is none
  store.written = nil -- key -> text, or false to delete it
  store.places = nil -- key of a sorted set -> {removed members, added scores and members}
  store.fields = nil -- key of a hash -> {removed fields, set fields and values}
  store.jobs = {} -- jid -> decoded record, or false
  store.queues = {} -- name -> what is known of a queue
  store.durations = nil -- what state/stats.lua gathers
  store.seen = nil -- worker -> when last seen, where that was read
  store.seq = nil
end

-- ---- texts

function store.prefetch(wanted)
  for i, text in ipairs(redis.call('MGET', unpack(wanted))) do
    store.texts[wanted[i]] = text
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
  store.written = store.written or {}
  store.written[key] = text
end

local function flush_texts()
  local set, gone = {}, {}
  for key, text in pairs(store.written) do
    if text then
      set[#set + 1] = key
      set[#set + 1] = text
    else
      gone[#gone + 1] = key
    end
  end
  for first = 1, #set, CHUNK do
    redis.call('MSET', unpack(set, first, math.min(first + CHUNK - 1, #set)))
  end
  for first = 1, #gone, CHUNK do
    redis.call('DEL', unpack(gone, first, math.min(first + CHUNK - 1, #gone)))
  end
end

-- ---- sorted sets

local function gathered(all, key)
  local of = all[key]
  if not of then
    of = {{}, {}}
    all[key] = of
  end
  return of
end

function store.add(key, score, member)
  store.places = store.places or {}
  local added = gathered(store.places, key)[2]
  added[#added + 1] = score
  added[#added + 1] = member
end

function store.remove(key, member)
  store.places = store.places or {}
  local removed = gathered(store.places, key)[1]
  removed[#removed + 1] = member
end

local function write_places(key, of)
  call_in_chunks('ZREM', key, of[1])
  call_in_chunks('ZADD', key, of[2])
end

-- Call a command that reads a sorted set, after what was gathered for it is written.
function store.sorted(command, key, ...)
  local of = store.places and store.places[key]
  if of then
    store.places[key] = nil
    write_places(key, of)
  end
  return redis.call(command, key, ...)
end

-- ---- hashes

function store.set_field(key, field, value)
  store.fields = store.fields or {}
  local set = gathered(store.fields, key)[2]
  set[#set + 1] = field
  set[#set + 1] = value
end

function store.drop_field(key, field)
  store.fields = store.fields or {}
  local dropped = gathered(store.fields, key)[1]
  dropped[#dropped + 1] = field
end

local function write_fields(key, of)
  call_in_chunks('HDEL', key, of[1])
  call_in_chunks('HSET', key, of[2])
end

-- Call a command that reads a hash, after what was gathered for it is written.
function store.hashed(command, key, ...)
  local of = store.fields and store.fields[key]
  if of then
    store.fields[key] = nil
    write_fields(key, of)
  end
  return redis.call(command, key, ...)
end

-- ---- counters

local COUNTERS = '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)$'

-- The sequence of the last event; the first event that is still kept; the sequence and the moment before which no
-- complete job can be past keeping (state/completed.lua); and how many jobs are tracked.
function store.counters()
  if not store.seq then
    local text = store.read(keys.of('counters')) or '0\t1\t0\t0\t0'
    local seq, first, sweep_seq, sweep_at, tracked = string.match(text, COUNTERS)
    store.seq, store.first_event = tonumber(seq), tonumber(first)
    store.sweep_seq, store.sweep_at, store.tracked = tonumber(sweep_seq), tonumber(sweep_at), tonumber(tracked)
    store.counted = text
  end
  return store
end

local function flush_counters()
  local text = table.concat({store.seq, store.first_event, store.sweep_seq, store.sweep_at, store.tracked}, '\t')
  if text ~= store.counted then
    store.write(keys.of('counters'), text)
  end
end

-- ---- events

-- Append an event, and give its sequence.
function store.emit(now, event, ...)
  local seq = store.counters().seq + 1
  store.seq = seq
  local names, facts, said = catalogue.events[event], {...}, {}
  for i, name in ipairs(names) do
    said[2 * i - 1] = name
    said[2 * i] = facts[i]
  end
  local most = config.value('max-events')
  redis.call('XADD', keys.of('events'), 'MAXLEN', '~', most, seq .. '-0', 'at', now, 'event', event, unpack(said))
  return seq
end

-- Keep this many events from now on, and never show again those that have fallen out, or fall out now.
function store.keep_events(most)
  local counters = store.counters()
  local kept = math.min(most, config.value('max-events'))
  counters.first_event = math.max(counters.first_event, counters.seq - kept + 1)
end

-- ---- the end of an operation

function store.flush()
  records.flush()
  if store.seq then
    flush_counters()
  end
  if store.written then
    flush_texts()
  end
  for key, of in pairs(store.places or {}) do
    write_places(key, of)
  end
  for key, of in pairs(store.fields or {}) do
    write_fields(key, of)
  end
end

-- The events after a sequence number, oldest first; each as its id and its fields and values, flat.
function store.events_after(after, count)
  local counters = store.counters()
  local first = math.max(after + 1, counters.first_event, counters.seq - config.value('max-events') + 1)
  local found = redis.call('XRANGE', keys.of('events'), first .. '-0', '+', 'COUNT', count)
  local page = {}
  for i, event in ipairs(found) do
    page[i] = {string.match(event[1], '^%d+'), event[2]}
  end
  return page
end

-- The store: Redis, behind a buffer of writes.
--
-- Everything that an operation names is read with one MGET before it begins. The texts that it changes are written with
-- one MSET at its end. An operation on many jobs also buffers its other writes, and makes one variadic call for each
-- key: a step of a hundred jobs takes about as many commands as a step of one. Reading a sorted set or a hash first
-- writes what is buffered for it. (For a single job buffering would cost more than it saves: then sorted sets and
-- hashes are written directly.)
--
-- Of the buffered changes of one key, removals are written before additions, because a job is lifted out of a list
-- before it is put into another one. If a job is lifted again in the same step, everything buffered is written first
-- (state/state_index.lua).
--
-- A STEP IS WHOLE, OR NOT AT ALL, OR THE NEXT CALL COMPLETES IT, even if an inner command fails (denied to the user, a key
-- of a wrong type). Redis does not undo, so the order of a step is:
--
-- 1. Everything is read. Writes are put off (store.put_off). A read of a key whose writes were put off does these early,
--    and a few writes are early because their reply is needed (store.early). Each early write is noted with its undoing.
-- 2. The texts are written with one MSET. This is the first write that lasts. If anything failed until then, the early
--    writes are undone, and the call ends with an error that says that nothing was changed.
-- 3. The writes that were put off are done. If one fails, the others are done nevertheless. Those that failed are kept as
--    text in `<p>intent`, and the counters get the mark `!`: the next call that writes does them first (store.mend).
--    While some still fail, calls that touch their keys end with an error; all other calls go on.
--
-- So nothing is left half done unless two commands fail at the same time: the one of the step, and MSET (or the undoing)
-- after it. A sequence that lies behind the stream's last id is raised to it (store.open, append_again).
--
-- All of this is forgotten when the next operation begins. Only pure caches are kept from call to call: the texts of
-- numbers, and the decoded form of texts.

local store = {}

local DEFAULT_EVENTS = '10000' -- as text, because every event needs it
local CHUNK = 2000 -- values in one variadic call; Lua unpacks at most 7999
local TRIM = 16 -- every 16th event checks the number of events: the check costs a fifth of an event
local KNOWN = 500 -- how many texts of numbers are cached

-- Numbers are expensive here: reading one from text, or writing one, costs as much as making a table. So the moment
-- comes with its text, text stays text, and the texts of some numbers are cached.
store.numbers = {[0] = '0'}
local known = 0

local written, size = {}, 0 -- keys and texts to write, and how many these are

local PLACES = 6 -- of a write that is put off
local later, count = {}, 0 -- the writes that were put off: command, key and up to four values each; all places in use
local undone, undoings = {}, 0 -- what undoes the early writes, each as a list; how many
local done = false -- how many places of `later` are written; false before the first write that lasts
local reading -- the key that was read last
local blocked -- key -> true: keys with writes that failed and are kept

-- (False and not nil: a key whose value is nil is lost to Lua's tables, which are rebuilt when it comes back.)
function store.begin(now, text, many)
  if known > KNOWN then
    store.numbers, known = {[0] = '0'}, 0
  end
  if not store.numbers[now] then
    store.numbers[now], known = text, known + 1
  end
  store.many = many -- whether writes are buffered
  store.texts = false -- key -> text, or false if there is none
  size, count, undoings, done = 0, 0, 0, false
  blocked = false
  store.gone = false -- keys to delete
  store.added, store.removed = false, false -- key of a sorted set -> scores and members; members
  store.set, store.dropped = false, false -- key of a hash -> fields and values; fields
  store.durations = false -- the buffer of state/stats.lua
  store.trims = false -- whether the next event must trim the stream
  store.cascade = false -- failed jobs whose dependents are not processed yet (state/cascade.lua)
  store.seen = false -- the worker whose last-seen time was read
end

-- Turn a whole number into text, once: a number costs Redis and this library more than a third of a microsecond each
-- time that it is written.
function store.text(number)
  local text = store.numbers[number]
  if not text then
    text = string.format('%d', number)
    store.numbers[number], known = text, known + 1
  end
  return text
end

-- ---- writes that are put off

-- Put off a variadic command, in chunks that Lua can unpack.
local function put_off_many(command, key, values, most)
  for first = 1, most, CHUNK do
    local last = first + CHUNK > most and most or first + CHUNK - 1
    later[count + 1], later[count + 2] = command, key
    later[count + 3] = most <= CHUNK and values or {unpack(values, first, last)}
    later[count + 4], later[count + 5], later[count + 6] = nil, nil, nil
    count = count + PLACES
  end
end

-- Put off what is buffered for a key, before another write to it.
local function gathered_first(key)
  for _, way in ipairs({{store.removed, 'ZREM'}, {store.added, 'ZADD'}, {store.dropped, 'HDEL'}, {store.set, 'HSET'}}) do
    local all, command = way[1], way[2]
    local values = all and all[key]
    if values then
      all[key] = nil
      put_off_many(command, key, values, #values)
    end
  end
end

-- Put a write off until the end of the step.
function store.put_off(command, key, one, two, three, four)
  if store.many and key then
    gathered_first(key)
  end
  later[count + 1], later[count + 2], later[count + 3] = command, key, one
  later[count + 4], later[count + 5], later[count + 6] = two, three, four
  count = count + PLACES
end

-- The arguments of a write that was put off, as a list. (Keys alone have no key of their own: DEL and MSET.)
local function words_of(at)
  local words, first = {later[at + 1]}, later[at + 3]
  if later[at + 2] then
    words[2] = later[at + 2]
  end
  for _, value in ipairs(type(first) == 'table' and first or {first, later[at + 4], later[at + 5], later[at + 6]}) do
    words[#words + 1] = value
  end
  return words
end

-- Do one of the writes that were put off.
local function write_one(at)
  local command, key, one, two, three = later[at + 1], later[at + 2], later[at + 3], later[at + 4], later[at + 5]
  if not command then
    return -- it was done early
  elseif three then
    local four = later[at + 6]
    if four then
      redis.call(command, key, one, two, three, four)
    else
      redis.call(command, key, one, two, three)
    end
  elseif two then
    redis.call(command, key, one, two)
  elseif type(one) ~= 'table' then
    if one then
      redis.call(command, key, one)
    else
      redis.call(command, key)
    end
  elseif key then
    redis.call(command, key, unpack(one))
  else
    redis.call(command, unpack(one))
  end
end

-- ---- writes that are early, and what undoes them

local function note(...)
  undoings = undoings + 1
  undone[undoings] = {...}
end

-- Note how the members of a sorted set are put back; `first` and `step` say where they stand among the values.
local function note_scores(key, values, first, step)
  for i = first, #values, step do
    local score = redis.call('ZSCORE', key, values[i])
    if score then
      note('ZADD', key, score, values[i])
    else
      note('ZREM', key, values[i])
    end
  end
end

local function note_fields(key, values, step)
  for i = 1, #values, step do
    local value = redis.call('HGET', key, values[i])
    if value then
      note('HSET', key, values[i], value)
    else
      note('HDEL', key, values[i])
    end
  end
end

-- For each command that may be early: note what undoes it.
local UNDO = {
  ZADD = function(key, values) note_scores(key, values, 2, 2) end,
  ZREM = function(key, values) note_scores(key, values, 1, 1) end,
  ZINCRBY = function(key, values) note_scores(key, {values[2]}, 1, 1) end,
  HSET = function(key, values) note_fields(key, values, 2) end,
  HDEL = function(key, values) note_fields(key, values, 1) end,
  HINCRBY = function(key, values) note_fields(key, {values[1]}, 1) end,
  ZREMRANGEBYSCORE = function(key, values)
    local found = redis.call('ZRANGEBYSCORE', key, values[1], values[2], 'WITHSCORES')
    for i = 1, #found, 2 do
      note('ZADD', key, found[i + 1], found[i])
    end
  end,
}

-- Append to a list now, and give its length.
function store.append(key, ...)
  if blocked then
    store.settle(key)
  end
  reading = key
  local size_ = redis.call('RPUSH', key, ...)
  undoings = undoings + 1
  undone[undoings] = {'LTRIM', key, '0', store.text(-1 - select('#', ...))}
  return size_
end

-- Count a number up now, and give it.
function store.next_number(key)
  reading = key
  local number = redis.call('INCRBY', key, '1')
  note('INCRBY', key, '-1')
  return number
end

-- Take the first entries off a sorted set, each as its member and its score.
function store.pop_first(key, most)
  if count > 0 or store.many or blocked then
    store.settle(key)
  end
  reading = key
  local found
  if most then
    found = redis.call('ZPOPMIN', key, most)
  else
    found = redis.call('ZPOPMIN', key)
  end
  for i = 1, #found, 2 do
    undoings = undoings + 1
    undone[undoings] = {'ZADD', key, found[i + 1], found[i]}
  end
  return found
end

-- Do writes of a command to a key now.
local function early(command, key, values)
  reading = key
  UNDO[command](key, values)
  for first = 1, #values, CHUNK do
    redis.call(command, key, unpack(values, first, math.min(first + CHUNK - 1, #values)))
  end
end

-- Do the buffered writes of a kind for one key now.
local function settle_gathered(all, command, key)
  local values = all and all[key]
  if values then
    all[key] = nil
    early(command, key, values)
  end
end

-- The replies of a key that was deleted.
local NOTHING = {LLEN = 0, ZCARD = 0, HLEN = 0, ZCOUNT = 0}
local LISTS = {LRANGE = true, ZRANGE = true, ZRANGEBYSCORE = true, ZREVRANGE = true, HGETALL = true, HKEYS = true}

-- Do the writes of one key now that were put off, before the key is read. Give the last one if it is not done, because
-- it says by itself what the key holds: a deletion, or a text.
function store.settle(key)
  if blocked and blocked[key] then
    store.fail(key, 'it has writes of an earlier step that failed')
  end
  local whole, text
  for at = 0, count - PLACES, PLACES do
    if later[at + 2] == key and later[at + 1] then
      local command = later[at + 1]
      if command == 'DEL' or command == 'SET' then
        whole, text = command, later[at + 3]
      else
        local words = words_of(at)
        later[at + 1] = false
        early(command, key, {unpack(words, 3)})
        whole = nil
      end
    end
  end
  if store.many then
    settle_gathered(store.removed, 'ZREM', key)
    settle_gathered(store.added, 'ZADD', key)
    settle_gathered(store.dropped, 'HDEL', key)
    settle_gathered(store.set, 'HSET', key)
  end
  return whole, text
end

-- Call a command that reads a key, after the writes that were put off for it.
function store.fetch(command, key, ...)
  reading = key
  if count > 0 or store.many or blocked then
    local whole, text = store.settle(key)
    if whole == 'SET' then
      return text
    elseif whole then
      return LISTS[command] and {} or NOTHING[command] or false
    end
  end
  return redis.call(command, key, ...)
end

-- The buffered values of a key, with one value more.
local function with(all, key, value)
  all = all or {}
  local of = all[key]
  if of then
    of[#of + 1] = value
  else
    all[key] = {value}
  end
  return all
end

local function with_pair(all, key, one, two)
  local of = all and all[key]
  if of then
    local count = #of
    of[count + 1] = one
    of[count + 2] = two
  elseif all then
    all[key] = {one, two, nil, nil}
  else
    return {[key] = {one, two, nil, nil}}
  end
  return all
end

-- ---- counters: `<sequence of the last event> <bounds>`

local known_counters, known_seq, known_bounds_text -- the counters decoded last
local known_text, known_bounds -- the bounds decoded last

local NONE = '0\t0\t1\t0\t0\t0\t0'

-- The sequence of the last event in the stream, or 0.
local function top()
  local last = store.fetch('XREVRANGE', keys.events, '+', '-', 'COUNT', 1)[1]
  return last and tonumber(string.match(last[1], '^%d+')) or 0
end

-- Read the counters and the options, and one or two texts more, with one command; give those texts.
function store.open(one, two)
  local found
  if two then
    found = redis.call('MGET', keys.counters, keys.config, one, two)
  elseif one then
    found = redis.call('MGET', keys.counters, keys.config, one)
  else
    found = redis.call('MGET', keys.counters, keys.config)
  end
  store.counters, store.config = found[1], found[2]
  if store.counters ~= known_counters then
    known_counters = store.counters
    local mark
    mark, known_seq, known_bounds_text = string.match(known_counters or NONE, '^(!?)(%d+)\t(.*)$')
    if not known_bounds_text then
      store.fail(keys.counters, 'its text is not that of counters')
    end
    store.pending = mark == '!' and known_counters
    known_seq = math.max(tonumber(known_seq), known_counters and 0 or top())
  end
  store.seq, store.began, store.bounds_text = known_seq, known_seq, known_bounds_text
  if known_bounds_text ~= known_text then
    store.bounds()
  end
  return found[3], found[4]
end

-- The sequence of the last event.
function store.last()
  return store.seq
end

-- Decode the bounds: how many jobs are tracked; the first event that is still kept; the sequence and the time before
-- which no complete job can be past retention (state/completed.lua); how many entries are left in the cascade; the time
-- before which no job with its own retention is due (state/retention.lua).
--
-- Every operation needs the first one (store.tracks) and the size of the cascade (store.left).
function store.bounds()
  if store.bounds_text ~= known_text then
    local tracked, first_event, sweep_seq, sweep_at, cascade_, keeping_ =
      string.match(store.bounds_text, '^(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)$')
    known_text = store.bounds_text
    known_bounds = {
      tracked = tonumber(tracked), first_event = tonumber(first_event),
      sweep_seq = tonumber(sweep_seq), sweep_at = tonumber(sweep_at), cascade = tonumber(cascade_),
      keeping = tonumber(keeping_),
    }
    store.tracks, store.left = known_bounds.tracked > 0, known_bounds.cascade
  end
  return known_bounds
end

-- Set one of the bounds.
function store.bound(name, value)
  local bounds = store.bounds()
  bounds[name] = value
  known_text = table.concat({
    bounds.tracked, bounds.first_event, bounds.sweep_seq, bounds.sweep_at, bounds.cascade, bounds.keeping,
  }, '\t')
  store.bounds_text = known_text
  store.tracks, store.left = bounds.tracked > 0, bounds.cascade
end

local function flush_counters()
  if store.seq ~= known_seq or store.bounds_text ~= known_bounds_text then
    known_counters = store.text(store.seq) .. '\t' .. store.bounds_text
    known_seq, known_bounds_text = store.seq, store.bounds_text
    store.save(keys.counters, known_counters)
  end
end

-- ---- texts

-- Read texts with one command.
function store.read_all(wanted)
  return redis.call('MGET', unpack(wanted))
end

function store.read(key)
  local texts = store.texts or {}
  store.texts = texts
  local text = texts[key]
  if text == nil then
    text = store.fetch('GET', key)
    texts[key] = text
  end
  return text
end

-- Write a text that is not read again in this operation.
function store.save(key, text)
  written[size + 1] = key
  written[size + 2] = text
  size = size + 2
end

-- Write a text, or false to delete the key, whatever its type.
function store.write(key, text)
  store.texts = store.texts or {}
  store.texts[key] = text
  if text then
    store.save(key, text)
  else
    store.gone = store.gone or {}
    store.gone[#store.gone + 1] = key
  end
end

-- Drop what was written before its key was deleted, and do not delete what was written after: MSET replaces any type.
local function without_deleted()
  local left, gone = {}, {}
  for i = 1, size, 2 do
    if store.texts[written[i]] ~= false then
      left[#left + 1] = written[i]
      left[#left + 1] = written[i + 1]
    end
  end
  for _, key in ipairs(store.gone) do
    if not store.texts[key] then
      gone[#gone + 1] = key
    end
  end
  written, size = left, #left
  return gone
end

-- Write the buffered texts: the first write that lasts. If a key has several, MSET keeps the last, as it should.
local function flush_texts()
  if size == 4 then
    redis.call('MSET', written[1], written[2], written[3], written[4])
  elseif size > CHUNK then
    for first = CHUNK + 1, size, CHUNK do
      store.put_off('MSET', false, {unpack(written, first, math.min(first + CHUNK - 1, size))})
    end
    redis.call('MSET', unpack(written, 1, CHUNK))
    written = {}
  elseif size > 0 then
    redis.call('MSET', unpack(written, 1, size))
    written = {}
  end
end

-- ---- sorted sets

function store.add(key, score, member)
  score = store.numbers[score] or score
  if store.many then
    store.added = with_pair(store.added, key, score, member)
  else
    store.put_off('ZADD', key, score, member)
  end
end

function store.remove(key, member)
  if store.many then
    store.removed = with(store.removed, key, member)
  else
    store.put_off('ZREM', key, member)
  end
end

local function put_off_all(all, command)
  for key, values in pairs(all) do
    put_off_many(command, key, values, #values)
  end
end

-- Put off the buffered members of sorted sets, before any that was entered in this very step is removed again.
function store.write_sorted()
  if store.removed then
    put_off_all(store.removed, 'ZREM')
    store.removed = false
  end
  if store.added then
    put_off_all(store.added, 'ZADD')
    store.added = false
  end
end

-- ---- hashes

function store.set_field(key, field, value)
  value = store.numbers[value] or value
  if store.many then
    store.set = with_pair(store.set, key, field, value)
  else
    store.put_off('HSET', key, field, value)
  end
end

function store.set_two_fields(key, one, first, two, second)
  if store.many then
    store.set_field(key, one, first)
    store.set_field(key, two, second)
  else
    store.put_off('HSET', key, one, store.numbers[first] or first, two, store.numbers[second] or second)
  end
end

-- Drop a field, and optionally another, which several drops in a row may have in common.
function store.drop_fields(key, one, two)
  if not store.many then
    if two then
      store.put_off('HDEL', key, one, two)
    else
      store.put_off('HDEL', key, one)
    end
    return
  end
  local of = store.dropped and store.dropped[key]
  if of and of[#of] == two then
    of[#of] = one
    of[#of + 1] = two
  else
    store.dropped = with(with(store.dropped, key, one), key, two)
  end
end

local function put_off_gathered()
  store.write_sorted()
  if store.dropped then
    put_off_all(store.dropped, 'HDEL')
  end
  if store.set then
    put_off_all(store.set, 'HSET')
  end
end

-- Put off what is buffered, and buffer no more from now on: what follows may move a job twice.
function store.gather_no_more()
  put_off_gathered()
  store.set, store.dropped, store.many = false, false, false
end

-- ---- events: one field, `e`: the moment, what, and its facts, with tabs between

-- The facts of an event after the first, each after a tab, if they are not three. One concatenation for each number of
-- facts: a table and table.concat would cost three times as much.
local function more(a, b, c, d, e, f)
  if not b then
    return a and '\t' .. a or ''
  elseif not d then
    return '\t' .. a .. '\t' .. b
  elseif not e then
    return '\t' .. a .. '\t' .. b .. '\t' .. c .. '\t' .. d
  end
  return '\t' .. a .. '\t' .. b .. '\t' .. c .. '\t' .. d .. '\t' .. e .. (f and '\t' .. f or '')
end

-- Append an event, and give its sequence.
function store.emit(now, event, one, two, three, four, five, six, seven)
  local seq, numbers = store.seq + 1, store.numbers
  store.seq = seq
  two, three, four, five = numbers[two] or two, numbers[three] or three, numbers[four] or four, numbers[five] or five
  local said
  if four and not five then
    said = numbers[now] .. '\t' .. event .. '\t' .. one .. '\t' .. two .. '\t' .. three .. '\t' .. four
  else
    said = numbers[now] .. '\t' .. event .. '\t' .. one .. more(two, three, four, five, six, seven)
  end
  local id = store.text(seq) -- the server adds `-0`
  if seq % TRIM == 0 or store.trims then
    local most = store.config and config.text('max-events') or DEFAULT_EVENTS
    store.put_off('XADD', keys.events, {'MAXLEN', '~', most, id, 'e', said})
  else
    store.put_off('XADD', keys.events, id, 'e', said)
  end
  return seq
end

-- Set how many events are kept. Events beyond that are never shown again.
function store.keep_events(most)
  local kept = math.min(most, config.value('max-events'))
  store.bound('first_event', math.max(store.bounds().first_event, store.last() - kept + 1))
  store.trims = true
end

-- The events after a sequence number, oldest first; each as its sequence and its text.
function store.events_after(after, count_)
  local kept = store.last() - config.value('max-events') + 1
  local first = math.max(after + 1, store.bounds().first_event, kept)
  local page = {}
  for i, event in ipairs(store.fetch('XRANGE', keys.events, store.text(first) .. '-0', '+', 'COUNT', count_)) do
    page[i] = {string.match(event[1], '^%d+'), event[2][2]}
  end
  return page
end

-- The server's time, in milliseconds.
function store.clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Publish a message of a dialect.
function store.publish(channel, message)
  redis.call('PUBLISH', keys.channel(channel), message) -- nobody is promised to hear it
end

-- ---- the end of an operation

-- End the call with an error that names a key.
function store.fail(key, what)
  error('CORRUPT ' .. key .. ' ' .. what, 0)
end

-- Refuse a step that writes to a key with writes that failed.
local function stop_at_blocked()
  for at = 0, count - PLACES, PLACES do
    if later[at + 1] and blocked[later[at + 2]] then
      store.fail(later[at + 2], 'it has writes of an earlier step that failed')
    end
  end
end

-- Write the texts, and do what was put off.
function store.commit()
  if blocked then
    stop_at_blocked()
  end
  flush_texts()
  for at = 0, count - PLACES, PLACES do
    done = at
    write_one(at)
  end
end

function store.flush()
  records.flush()
  flush_counters()
  if store.gone then
    local gone = without_deleted()
    if gone[1] then
      put_off_many('DEL', false, gone, #gone)
    end
  end
  if store.many then
    put_off_gathered()
  end
  store.commit()
end

-- ---- after an error

-- Try a command; give the error, if it fails.
local function try(words)
  local reply = redis.pcall(unpack(words))
  return type(reply) == 'table' and reply.err or nil
end

-- Append an event under the first free sequence, because the stream is ahead of the counters.
local function append_again(words)
  local last = redis.pcall('XREVRANGE', keys.events, '+', '-', 'COUNT', 1)
  local highest = last[1] and tonumber(string.match(last[1][1], '^%d+'))
  if not highest then
    return false
  end
  store.seq = math.max(store.seq, highest + 1)
  return try({'XADD', keys.events, store.text(highest + 1), 'e', words[#words]}) == nil
end

-- Commands as text: for each the number of its words, then each word after its length.
local function packed(commands)
  local parts = {}
  for _, words in ipairs(commands) do
    parts[#parts + 1] = '*' .. #words .. '\n'
    for _, word in ipairs(words) do
      word = type(word) == 'number' and store.text(word) or word
      parts[#parts + 1] = #word .. '\n' .. word
    end
  end
  return table.concat(parts)
end

local function unpacked(text)
  local commands, at = {}, 1
  while at <= #text do
    local many, behind = string.match(text, '^%*(%d+)\n()', at)
    local words = {}
    for i = 1, tonumber(many) do
      local long, from = string.match(text, '^(%d+)\n()', behind)
      behind = from + tonumber(long)
      words[i] = string.sub(text, from, behind - 1)
    end
    commands[#commands + 1], at = words, behind
  end
  return commands
end

-- Keep commands that failed, after those that are kept already; say whether that succeeded.
local function keep(commands, counters)
  local kept = store.pending and redis.call('GET', keys.intent) or ''
  known_counters = nil
  return try({'MSET', keys.intent, kept .. packed(commands), keys.counters, '!' .. counters}) == nil
end

-- Undo the early writes, last first; give those whose undoing failed.
local function undo()
  local left = {}
  for i = undoings, 1, -1 do
    if try(undone[i]) then
      left[#left + 1] = undone[i]
    end
  end
  undoings = 0
  return left
end

-- Try the writes that were put off, from the one that failed on; give those that failed.
local function go_on()
  local left, first = {}, nil
  local seq = store.seq
  for at = done, count - PLACES, PLACES do
    if later[at + 1] then
      local words = words_of(at)
      local fault = try(words)
      if fault and words[1] == 'XADD' and words[2] == keys.events and string.find(fault, 'equal or smaller', 1, true)
        and append_again(words) then
        fault = nil
      end
      if fault then
        first = first or words
        left[#left + 1] = words
      end
    end
  end
  if not left[1] and store.seq ~= seq then
    known_counters = nil
    try({'SET', keys.counters, store.text(store.seq) .. '\t' .. store.bounds_text})
  end
  return left
end

-- Whether the step came to its first write that lasts.
local function has_begun(fault)
  return done and (size > 0 or done > 0)
end

-- Undo what a step that is refused has done early, and forget what it has put off; give an error if that failed.
function store.forget()
  if undoings > 0 then
    local left = undo()
    if left[1] then
      undone, undoings = left, #left
      return 'an early write could not be undone'
    end
  end
  count, size = 0, 0
end

-- Repair a step that an error has stopped: undo it, or complete it, or keep what is left to do. Give the text of the
-- error, or nil if the step is complete.
function store.recover(fault)
  local begun = has_begun(fault)
  local left = begun and go_on() or undo()
  queues.unknown()
  known_counters, blocked = nil, false
  if begun and not left[1] then
    return nil
  end
  local key = begun and (left[1][2]) or done and later[done + 2] or reading or keys.counters
  if left[1] then
    local counters = begun and store.text(store.seq) .. '\t' .. store.bounds_text or store.counters or NONE
    counters = string.gsub(counters, '^!', '')
    local what = keep(left, counters) and 'the step is kept: the next call completes it' or 'the step is half done'
    return 'CORRUPT ' .. key .. ' ' .. what .. ': ' .. left[1][1] .. ' failed: ' .. fault
  elseif string.find(fault, '^WRONGTYPE') then
    return 'CORRUPT ' .. key .. ' nothing was changed: it is of another type: ' .. fault
  end
  return fault
end

-- Do what was kept of earlier steps. A call that only reads does nothing; it may not read their keys.
function store.mend(reads)
  local text = redis.call('GET', keys.intent) or ''
  local commands, counters = unpacked(text), string.gsub(store.pending, '^!', '')
  local left = commands
  if not reads then
    redis.call('MSET', keys.intent, text)
    left = {}
    for _, words in ipairs(commands) do
      if try(words) then
        left[#left + 1] = words
      end
    end
    counters = (left[1] and '!' or '') .. counters
    redis.call('MSET', keys.intent, packed(left), keys.counters, counters)
    if not left[1] then
      redis.pcall('DEL', keys.intent)
    end
  end
  return left
end

-- Keep calls away from the keys of commands that still fail.
function store.block(left)
  if not left[1] then
    return
  end
  blocked = {}
  for _, words in ipairs(left) do
    if words[1] == 'DEL' or words[1] == 'MSET' or words[1] == 'XADD' then
      store.fail(words[2], 'a write of an earlier step still fails: ' .. words[1])
    end
    blocked[words[2]] = true
  end
end

-- The store: Redis, behind a buffer of writes.
--
-- Everything that an operation names is read with one MGET before it begins. The texts that it changes are written with
-- one MSET at its end. An operation on many jobs also buffers its other writes, and makes one variadic call for each
-- key: a step of a hundred jobs takes about as many commands as a step of one. (For a single job that would cost more
-- than it saves.) All writes but a few are put off until the texts are written, so that the MSET decides; state/writes.lua
-- says what becomes of a step in which a command fails, and state/intent.lua keeps what is left to do.
--
-- Of the buffered changes of one key, removals are written before additions, because a job is lifted out of a list
-- before it is put into another one. If a job is lifted again in the same step, what is buffered so far comes first
-- (state/state_index.lua).
--
-- All of this is forgotten when the next operation begins. Only pure caches are kept from call to call: the texts of
-- numbers, and the decoded form of texts.

local store = {}

local DEFAULT_EVENTS = 10000
store.TRIM = 16 -- every 16th event checks the number of events: the check costs a fifth of an event
local KNOWN = 500 -- how many texts of numbers are cached

-- Numbers are expensive here: reading one from text, or writing one, costs as much as making a table. So the moment
-- comes with its text, text stays text, and the texts of some numbers are cached.
store.numbers = {[0] = '0'}
local known = 0

local written, size = {}, 0 -- keys and texts to write, and how many these are
local told, told_id = false, false -- the last event of a plain operation, and its sequence as text
local entries, entered = false, false -- the journal's entries of a plain operation, and the number of the last one as text
local entered_heavy = false -- the number of the last heavy one

-- Whether the last operation was plain, so that the known counters are those that it left; the options that it left; and
-- whether a call with the server's clock may go on with them. While they are the same, all that was decoded from them holds.
store.calm = false
local calm_config
store.own = false -- what the epochs remember of this server's steps, if they remember the last plain one

-- The number of the row of plain operations that the present one is part of: nobody else has written since the first of
-- them. So what one of them has read, and all of them keep up to date, need not be read again. A verb that writes is a row of
-- its own; one that reads leaves the row as it is.
store.row = 0

store.changed = false -- whether anything that is kept of the namespace may have changed but the last sequence

-- Forget what a plain operation would find of the one before (ops/plain.lua).
function store.begin_plain()
  store.changed = true
  if known > KNOWN then
    store.numbers, known = {[0] = '0'}, 0
  end
  store.entered = true
  store.counters, store.began = store.known_counters, store.seq
  store.many = false -- whether writes are buffered
  store.trims = false -- whether the next event must trim the stream
  store.texts = false -- key -> text, or false if there is none
  store.days = false -- day and queue -> whether it has statistics (state/stats.lua)
  size, told, entries, entered_heavy = 0, false, false, false
  writes.begin()
end

local function end_row()
  store.calm, store.own, store.row = false, false, store.row + 1
end

-- (False and not nil: a key whose value is nil is lost to Lua's tables, which are rebuilt when it comes back.)
function store.begin(now, text, many)
  store.begin_plain()
  if not store.numbers[now] then
    store.numbers[now], known = text, known + 1
  end
  if not store.reads then
    end_row()
  end
  store.many = many
  store.gone = false -- keys to delete
  store.added, store.removed = false, false -- key of a sorted set -> scores and members; members
  store.set, store.dropped = false, false -- key of a hash -> fields and values; fields
  store.buffered = false -- key -> the members or fields that were entered
  store.durations, store.counts, store.parts, store.by_tags = false, false, false, false -- the buffers of state/stats.lua
  store.firsts = false -- key -> its first parked job (state/concurrency_keys.lua)
  store.replies = false -- the buffer of state/idempotency.lua
  store.requests = false -- id -> request (state/requests.lua)
  store.sizes = false -- group -> how many failed jobs it has (state/failures.lua)
  store.tagged = false -- tag -> how many jobs more or fewer have it (state/tags.lua)
  store.cascade = false -- failed jobs whose dependents are not processed yet (state/cascade.lua)
  store.seen = false -- the worker whose last-seen time was read
  store.claims = false -- the leases of one worker, in order (state/workers.lua)
end

-- Forget the writes of the last step, which are done: reads between two steps are not to write them again.
function store.rest()
  store.many = false
  writes.begin()
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

local PLACES = 1000 -- the most places of a list that is made at once
local places = {} -- as many as were needed so far

-- A list with so many places, to be set from the first to the last. To let it grow would cost twice as much. (A list with
-- more places, of which Lua may unpack no more, grows.)
function store.list(size_)
  if size_ > PLACES then
    return {}
  end
  for i = #places + 1, size_ do
    places[i] = false
  end
  return {unpack(places, 1, size_)}
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

-- ---- counters: `<sequence of the last event> <epoch> <bounds>`

store.known_counters, store.known_seq = nil, 0 -- the counters decoded or written last, as text, and their sequence
local known_epoch, known_bounds_text -- their epoch and bounds
local suffix_for, suffix = '0', '-0' -- an epoch, and what it adds to the id of an event
local known_text, known_bounds -- the bounds decoded last

store.NONE = '0\t0\t0\t1\t0\t0\t0\t0' -- the counters of an empty namespace

-- End the call with an error: the counters cannot be read.
local function refuse_counters()
  writes.fail(keys.counters, 'its text is not that of counters of this version')
end

local function follow_epoch()
  if store.epoch ~= suffix_for then
    suffix_for = store.epoch
    suffix = '-' .. suffix_for
  end
end

-- What stands behind a sequence in the counters, and in the id of an event; and of which epoch, bounds and options.
store.tail, store.suffix = false, false
local tail_epoch, tail_bounds, tail_config = false, false, false

-- See to it that these are those of now.
local function follow_bounds()
  if store.bounds_text ~= tail_bounds or store.epoch ~= tail_epoch or store.config ~= tail_config then
    follow_epoch()
    tail_bounds, tail_epoch, tail_config, store.suffix = store.bounds_text, store.epoch, store.config, suffix
    store.tail = '\t' .. tail_epoch .. '\t' .. tail_bounds
    completed.learn()
  end
end

-- Exchange what is kept of one namespace for that of another one (state/keys.lua).
function store.keep(namespace)
  namespace.counters, namespace.seq, namespace.epoch, namespace.bounds_text, namespace.is_pending =
    store.known_counters, store.known_seq, known_epoch, known_bounds_text, store.pending
  namespace.bounds_of, namespace.bounds, namespace.tracks, namespace.left =
    known_text, known_bounds, store.tracks, store.left
  namespace.calm, namespace.calm_config, namespace.own = store.calm, calm_config, store.own
  namespace.suffix_for, namespace.suffix = suffix_for, suffix
end

-- The same after operations that have changed nothing else.
function store.keep_counters(namespace)
  namespace.counters, namespace.seq = store.known_counters, store.known_seq
end

function store.recall(namespace)
  store.known_counters, store.known_seq, known_epoch, known_bounds_text, store.pending =
    namespace.counters, namespace.seq, namespace.epoch, namespace.bounds_text, namespace.is_pending
  known_text, known_bounds, store.tracks, store.left =
    namespace.bounds_of, namespace.bounds, namespace.tracks, namespace.left
  store.calm, calm_config, store.own = namespace.calm, namespace.calm_config, namespace.own
  suffix_for, suffix = namespace.suffix_for, namespace.suffix
  store.seq, store.epoch, store.bounds_text, store.config = store.known_seq, known_epoch, known_bounds_text, calm_config
  if store.calm then
    follow_bounds()
  end
end

-- Decode the counters and the options, which were read.
local function meet(found)
  store.counters, store.config = found[1], found[2]
  if store.calm and (store.counters ~= store.known_counters or store.config ~= calm_config) then
    end_row()
  end
  if store.counters ~= store.known_counters or not store.counters then
    store.known_counters = store.counters
    local mark
    mark, store.known_seq, known_epoch, known_bounds_text =
      string.match(store.known_counters or store.NONE, '^(!?)(%d+)\t(%d+)\t(.*)$')
    if not known_bounds_text then
      refuse_counters()
    end
    store.pending = mark == '!' -- whether writes of earlier steps are kept (state/intent.lua)
    store.known_seq = tonumber(store.known_seq)
    if not store.known_counters then
      store.known_seq, known_epoch = writes.top() -- they are lost if there is a stream
    end
  end
  store.seq, store.began, store.epoch, store.bounds_text = store.known_seq, store.known_seq, known_epoch, known_bounds_text
  if known_bounds_text ~= known_text then
    store.bounds()
  end
end

-- Whether an operation has nothing to do but its own task.
local function is_quiet(simulated)
  return not store.pending and not store.tracks and store.left == 0
    and not (store.config and config.value('stats-workers') > 0)
    and (simulated or not epochs.is_foreign())
end

-- Read the counters and the options, and one or two texts more, with one command.
--
-- The guard is a key that never exists. While the slot of a cluster moves key by key, a node refuses to read several
-- keys of which one is missing. So no step begins on a part of its keys, even for a client that follows ASK.
local function read(one, two, three)
  if three then
    return redis.call('MGET', keys.counters, keys.config, one, two, three, keys.guard)
  elseif two then
    return redis.call('MGET', keys.counters, keys.config, one, two, keys.guard)
  elseif one then
    return redis.call('MGET', keys.counters, keys.config, one, keys.guard)
  end
  return redis.call('MGET', keys.counters, keys.config, keys.guard)
end

-- Read the counters and the options, and one or two texts more; give those texts.
function store.open(one, two)
  local found = read(one, two)
  meet(found)
  return found[3], found[4]
end

-- Read the counters and the options, and further texts, with one command; give all of them. The texts stand from the
-- fourth place on; the first three are for what every operation reads.
function store.open_all(wanted)
  wanted[1], wanted[2], wanted[3] = keys.counters, keys.config, keys.guard
  local found = redis.call('MGET', unpack(wanted))
  meet(found)
  return found
end

local shared = false -- whether several operations share the call: then nobody else can change these between two of them

-- Say whether the operations that follow share a call.
function store.share(on)
  shared, store.calm, store.own, store.changed = on, false, false, true
end

-- Read like `read` for a plain operation. While no option is set, the options are a key that does not exist, and do what the
-- guard does.
local function read_plain(one, two, three)
  if not calm_config then
    local found
    if not two then
      found = redis.call('MGET', keys.counters, keys.config, one)
    elseif not three then
      found = redis.call('MGET', keys.counters, keys.config, one, two)
    else
      found = redis.call('MGET', keys.counters, keys.config, one, two, three)
    end
    if not found[2] then
      return found
    end
  end
  return read(one, two, three)
end

-- Read like store.open for a plain operation, up to three texts; first say whether it has nothing to do but its own task.
-- If the row goes on, store.calm stays true.
function store.open_plain(simulated, one, two, three)
  local found
  if store.calm and (simulated or store.own) then
    if shared then
      if two then
        found = three and redis.call('MGET', one, two, three) or redis.call('MGET', one, two)
        return true, found[1], found[2], found[3]
      end
      return true, redis.call('GET', one)
    end
    found = read_plain(one, two, three)
    if found[1] == store.known_counters and found[2] == calm_config then
      return true, found[3], found[4], three and found[5]
    end
  else
    found = read_plain(one, two, three)
  end
  end_row()
  store.begin_plain()
  meet(found)
  return is_quiet(simulated), found[3], found[4], three and found[5]
end

-- The same for many texts, as store.open_all.
function store.open_all_plain(simulated, wanted)
  store.begin_plain()
  local before = store.calm and store.known_counters
  local found = store.open_all(wanted)
  if found[1] ~= before or found[2] ~= calm_config or not (simulated or store.own) then
    store.row = store.row + 1
  end
  return is_quiet(simulated), found
end

-- The sequence of the last event.
function store.last()
  return store.seq
end

-- Set the epoch; it is text, as all numbers that are mostly written.
function store.set_epoch(epoch)
  store.epoch = epoch
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
    if not keeping_ then
      refuse_counters()
    end
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

-- The counters, as text.
function store.counters_text()
  return store.text(store.seq) .. '\t' .. store.epoch .. '\t' .. store.bounds_text
end

local function flush_counters()
  if store.seq ~= store.known_seq or store.bounds_text ~= known_bounds_text then
    store.known_counters = (store.pending and '!' or '') .. store.counters_text()
    store.known_seq, known_epoch, known_bounds_text = store.seq, store.epoch, store.bounds_text
    store.save(keys.counters, store.known_counters)
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
    text = writes.fetch('GET', key)
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
  local left, stays, gone = {}, {}, {}
  for i = 1, size, 2 do
    if store.texts[written[i]] ~= false then
      left[#left + 1] = written[i]
      left[#left + 1] = written[i + 1]
      stays[written[i]] = true
    end
  end
  for _, key in ipairs(store.gone) do
    if not stays[key] then
      gone[#gone + 1] = key
    end
  end
  written, size = left, #left
  return gone
end

-- ---- what is buffered: removals are written before entries

local function note_buffered(key, member)
  local buffered = store.buffered or {}
  buffered[key] = buffered[key] or {}
  buffered[key][member] = true
  store.buffered = buffered
end

-- Put off what is buffered for a key, if it has this member or field: it was entered in this very step, and is removed now.
local function put_off_entered(key, member)
  local of = store.buffered and store.buffered[key]
  if of and of[member] then
    writes.put_off_gathered_of(key)
    store.buffered[key] = nil
  end
end

-- ---- sorted sets

function store.add(key, score, member)
  score = store.numbers[score] or score
  if store.many then
    store.added = with_pair(store.added, key, score, member)
    note_buffered(key, member)
  else
    writes.put_off('ZADD', key, score, member)
  end
end

function store.remove(key, member)
  if store.many then
    put_off_entered(key, member)
    store.removed = with(store.removed, key, member)
  else
    writes.put_off('ZREM', key, member)
  end
end

-- ---- hashes

function store.set_field(key, field, value)
  value = store.numbers[value] or value
  if store.many then
    store.set = with_pair(store.set, key, field, value)
    note_buffered(key, field)
  else
    writes.put_off('HSET', key, field, value)
  end
end

function store.set_two_fields(key, one, first, two, second)
  if store.many then
    store.set_field(key, one, first)
    store.set_field(key, two, second)
  else
    writes.put_off('HSET', key, {one, store.numbers[first] or first, two, store.numbers[second] or second})
  end
end

-- Drop a field, and optionally another, which several drops in a row may have in common.
function store.drop_fields(key, one, two)
  if not store.many then
    if two then
      writes.put_off('HDEL', key, one, two)
    else
      writes.put_off('HDEL', key, one)
    end
    return
  end
  put_off_entered(key, one)
  put_off_entered(key, two)
  local of = store.dropped and store.dropped[key]
  if of and of[#of] == two then
    of[#of] = one
    of[#of + 1] = two
  else
    store.dropped = with(with(store.dropped, key, one), key, two)
  end
end

local function put_off_gathered()
  if store.removed then
    writes.put_off_all(store.removed, 'ZREM')
    store.removed = false
  end
  if store.added then
    writes.put_off_all(store.added, 'ZADD')
    store.added = false
  end
  if store.dropped then
    writes.put_off_all(store.dropped, 'HDEL')
  end
  if store.set then
    writes.put_off_all(store.set, 'HSET')
  end
end

-- Buffer writes from now on.
function store.gather()
  store.many = true
end

-- Put off what is buffered, and buffer no more from now on: what follows may move a job twice.
function store.gather_no_more()
  put_off_gathered()
  store.set, store.dropped, store.many = false, false, false
end

-- ---- events: the moment, what, and its facts, with tabs between
--
-- The events of a step are one entry of the stream, up to a hundred of them: one a line, in the field `e`. The entry has
-- the sequence of its last event, so the first entry whose sequence is not lower than that of an event has that event.

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

-- Let an event of the step trim the stream.
local function trim_events(seq, at)
  local first = seq - (store.config and config.value('max-events') or DEFAULT_EVENTS) + 1
  if first > 1 then
    writes.trim_events(string.format('%d', first), at)
  end
end

local function put_off_event(seq, said)
  follow_epoch()
  if seq % store.TRIM == 0 or store.trims then
    trim_events(seq)
  end
  writes.put_off_event(suffix, said)
end

local thousand, front = -1, '' -- the thousands of a sequence, and these as text
local THREE = {} -- the last three digits of numbers, as text

local function three(rest)
  local digits = string.format('%03d', rest)
  THREE[rest] = digits
  return digits
end

-- The text of a sequence. It mostly has the same thousands as the one before.
function store.id_of(seq)
  local rest = seq % 1000
  if seq < 1000 then
    return string.format('%d', seq)
  elseif seq - rest ~= thousand then
    thousand = seq - rest
    front = string.format('%d', thousand / 1000)
  end
  return front .. (THREE[rest] or three(rest))
end

-- The sequence of the last event, as text; or one that is so much higher.
function store.seq_text(more)
  return store.id_of(store.seq + (more or 0))
end

-- The sequences of the next events, as texts. The events are appended by store.tell_all.
function store.next_ids(count_)
  local ids, seq, at = store.list(count_), store.seq, 0
  while at < count_ do
    at = at + 1
    ids[at] = store.id_of(seq + at)
    local behind = seq - thousand -- from here on to the next thousand, unless there is none yet
    for i = at + 1, seq < 1000 and at or math.min(count_, 999 - behind) do
      ids[i] = front .. (THREE[behind + i] or three(behind + i))
      at = i
    end
  end
  return ids
end

-- Append the first events of a plain operation on several jobs: for each so many parts of its text, of which the first
-- begins with a line break.
function store.tell_all(parts, each, count_)
  local seq = store.seq + count_
  store.seq = seq
  follow_epoch()
  local behind = seq % store.TRIM
  if behind < count_ then
    trim_events(seq - behind, count_ - behind)
  end
  writes.put_off_events(suffix, parts, count_, each)
end

-- Append a single event now that trims the stream; give the server's reply.
function store.append_trimming(seq, id, said)
  local first = seq - (store.config and config.value('max-events') or DEFAULT_EVENTS) + 1
  if first > 1 then
    return redis.pcall('XADD', keys.events, 'MINID', '~', string.format('%d', first), id, 'e', said)
  end
  return redis.pcall('XADD', keys.events, id, 'e', said)
end

-- Put off the event that was kept aside, because it is not alone.
local function put_off_told()
  if told then
    put_off_event(store.seq, told)
  end
end

-- Append an event of a plain operation, which is text; give its sequence as text.
function store.tell(said)
  local seq = store.seq + 1
  if told then
    put_off_told()
  end
  store.seq = seq
  told_id, told = store.id_of(seq), said
  return told_id
end

-- Append events of a plain operation that are alike, each of a job.
function store.tell_each(before, jids)
  put_off_told()
  told = false
  for i = 1, #jids do
    store.seq = store.seq + 1
    put_off_event(store.seq, before .. jids[i])
  end
  told_id = store.id_of(store.seq)
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
  put_off_event(seq, said)
  return seq
end

-- Set how many events are kept. Events beyond that are never shown again.
function store.keep_events(most)
  local kept = math.min(most, config.value('max-events'))
  store.bound('first_event', math.max(store.bounds().first_event, store.last() - kept + 1))
  store.trims = true
end

-- The first event that is kept.
function store.first_kept()
  return math.max(store.bounds().first_event, store.last() - config.value('max-events') + 1)
end

-- Add the events of an entry from a sequence on to a page, up to a count, each as its sequence, its text and its epoch;
-- give the sequence after the last one.
local function unfold(entry, first, page, count_)
  local top, epoch = string.match(entry[1], '^(%d+)-(%d+)$')
  local said = entry[2][2]
  if not string.find(said, '\n', 1, true) then
    page[#page + 1] = {top, said, epoch}
    return top + 1
  end
  local _, breaks = string.gsub(said, '\n', '')
  local seq = top - breaks
  for line in string.gmatch(said, '[^\n]+') do
    if seq >= first and #page < count_ then
      page[#page + 1] = {store.text(seq), line, epoch}
    end
    seq = seq + 1
  end
  return seq
end

-- The events after a sequence number, oldest first; each as its sequence, its text and its epoch. First the entries that
-- end within the page, then the one that ends behind it.
function store.events_after(after, count_)
  local first = math.max(after + 1, store.first_kept())
  local page, next_seq = {}, first
  local low, high = store.text(first), store.text(first + count_ - 1)
  for _, entry in ipairs(writes.fetch('XRANGE', keys.events, low, high)) do
    next_seq = unfold(entry, first, page, count_)
  end
  if #page < count_ and next_seq <= store.last() then
    local entry = writes.fetch('XRANGE', keys.events, store.text(next_seq), '+', 'COUNT', 1)[1]
    if entry then
      unfold(entry, first, page, count_)
    end
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

function store.flush()
  records.flush()
  flush_counters()
  if store.gone then
    local gone = without_deleted()
    if gone[1] then
      writes.put_off_many('DEL', false, gone, #gone)
    end
  end
  if store.many then
    put_off_gathered()
  end
  writes.commit(written, size)
  if size > 4 then
    written = {}
  end
end

-- Append an entry of the journal to a plain operation, with its number as text.
function store.record(words, number, is_heavy)
  entries, entered = entries or {}, number
  entries[#entries + 1] = words
  entered_heavy = is_heavy and number or entered_heavy
end

-- Write the number of the last entry of the journal, and that of the last heavy one.
local function save_entered()
  store.save(keys.journaled, entered)
  if entered_heavy then
    store.save(keys['journal-heavy'], entered_heavy)
  end
end

-- Write the record and the events of a plain operation, with the texts that were saved before. What follows are calls of
-- writes.last, and then store.end_plain.
function store.write_plain(key, text)
  if entries then
    save_entered()
  end
  follow_bounds()
  store.known_counters, store.known_seq, known_bounds_text = told_id .. store.tail, store.seq, tail_bounds
  if size == 0 and store.seq % store.TRIM > 0
    and writes.begin_last_two(key, text, keys.counters, store.known_counters, told_id, store.suffix, told) then
    return
  end
  put_off_told()
  written[size + 1], written[size + 2], written[size + 3], written[size + 4] = key, text, keys.counters, store.known_counters
  size = size + 4
  writes.begin_last(written, size)
end

-- The same for several records or none: `texts` are keys and texts.
function store.write_all_plain(texts)
  for i = 1, size do
    texts[#texts + 1] = written[i]
  end
  written, size = texts, #texts
  if entries then
    save_entered()
  end
  put_off_told()
  flush_counters()
  writes.begin_last(written, size)
end

local function write_entries()
  for i = 1, #entries do
    writes.last_many('XADD', keys.journal, entries[i])
  end
end

-- End a plain operation.
function store.end_plain(simulated)
  if entries then
    write_entries()
  end
  if writes.left then
    writes.end_(written, size)
  end
  if size > 4 then
    written = {}
  end
  follow_bounds()
  store.calm, calm_config, store.own = true, store.config, epochs.remember(not simulated)
end

-- Forget what is known of the counters: they may not have been written.
function store.unknown()
  store.known_counters, store.calm, store.own = nil, false, false
end

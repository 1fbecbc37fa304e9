-- Writes: what a step writes, in an order in which nothing is left half done.
--
-- A STEP IS WHOLE, OR NOT AT ALL, OR THE NEXT CALL COMPLETES IT, even if an inner command fails (denied to the user, a key
-- of a wrong type). Redis does not undo, so the order of a step is:
--
-- 1. Everything is read. Writes are put off (writes.put_off). A read of a key whose writes were put off does these early,
--    and a few writes are early because their reply is needed (writes.append, writes.pop_first). Each early write is noted with its undoing.
-- 2. The texts are written with one MSET. This is the first write that lasts. If anything failed until then, the early
--    writes are undone, and the call ends with an error that says that nothing was changed.
-- 3. The writes that were put off are done. If one fails, the others are done nevertheless. Those that failed are kept as
--    text in `<p>intent`, and the counters get the mark `!`: the next call that writes does them first (intent.mend).
--    While some still fail, calls that touch their keys end with an error; all other calls go on.
--
-- So nothing is left half done unless two commands fail at the same time: the one of the step, and MSET (or the undoing)
-- after it. A sequence that lies behind the stream's last id is raised to it (store.open, append_again).

local writes = {}

local CHUNK = 2000 -- values in one variadic call; Lua unpacks at most 7999
local PLACES = 5 -- of a write that is put off
local later, count = {}, 0 -- the writes that were put off: command, key and up to three values, or a list
local places -- key -> where its writes are, once there are many
local undone, undoings = {}, 0 -- what undoes the early writes: command, key, and one or two values, or a list
local texts = false -- whether texts are written first
local done = false -- how many places of `later` are written; less the events left; false before the first write that lasts
local LONG = 24 * PLACES -- more writes are found by their keys
local PACK = 100 -- the most events of an entry of the stream
local events, event_texts = 0, {} -- the events of the step; the last one has the sequence of the store
local parts = 1 -- of how many texts each consists; if of several, the first begins with a line break
local suffix = '-0' -- what the ids of their entries have behind the sequence
local trim_to, trim_at = false, 0 -- the first event that must stay, as text, if one of them trims the stream; which one
local deleted = false -- whether a key is deleted by a write that was put off
local reading -- the key that was read last
local blocked -- key -> true: keys with writes that failed and are kept

-- (A place holds false, not nil: Lua's tables forget a place with nil, and are rebuilt when it is used again.)
function writes.begin()
  count, undoings, done, blocked, places, deleted = 0, 0, false, false, false, false
  if events > 100 then
    event_texts = {}
  end
  events, parts, trim_to = 0, 1, false
end

-- ---- writes that are put off

-- Remember where a write of a key is.
local function place(key, at)
  local of = places[key]
  if of then
    of[#of + 1] = at
  else
    places[key] = {at}
  end
end

-- Find the writes by their keys from now on.
local function find_by_key()
  places = {}
  for at = 0, count - PLACES, PLACES do
    place(later[at + 2], at)
  end
end

-- Put off a variadic command, in chunks that Lua can unpack.
function writes.put_off_many(command, key, values, most)
  for first = 1, most, CHUNK do
    local last = first + CHUNK > most and most or first + CHUNK - 1
    later[count + 1], later[count + 2] = command, key
    later[count + 3] = most <= CHUNK and values or {unpack(values, first, last)}
    later[count + 4], later[count + 5] = false, false
    if places then
      place(key, count)
    end
    count = count + PLACES
  end
end

local function put_off_gathered(all, command, key)
  local values = all and all[key]
  if values then
    all[key] = nil
    writes.put_off_many(command, key, values, #values)
  end
end

-- Put off what is buffered for a key, before another write to it.
function writes.put_off_gathered_of(key)
  local removed, added, dropped, set = store.removed, store.added, store.dropped, store.set
  if removed and removed[key] or added and added[key] then
    put_off_gathered(removed, 'ZREM', key)
    put_off_gathered(added, 'ZADD', key)
  end
  if dropped and dropped[key] or set and set[key] then
    put_off_gathered(dropped, 'HDEL', key)
    put_off_gathered(set, 'HSET', key)
  end
end

-- Put a write off until the end of the step.
function writes.put_off(command, key, one, two, three)
  if store.many and key then
    writes.put_off_gathered_of(key)
  end
  local at = count
  later[at + 1], later[at + 2], later[at + 3], later[at + 4], later[at + 5] = command, key, one or false, two or false, three or false
  if places then
    place(key, at)
  end
  count = at + PLACES
end

-- Put off the append of an event. (An epoch begins with the first event of a step: so all have the same suffix.)
function writes.put_off_event(suffix_, text)
  local at = events * parts
  events, suffix = events + 1, suffix_
  event_texts[at + 1] = parts == 1 and text or '\n' .. text
  for i = 2, parts do
    event_texts[at + i] = ''
  end
end

-- Put off the append of the first events of the step, each of which consists of so many texts.
function writes.put_off_events(suffix_, texts_, count_, each)
  events, event_texts, suffix, parts = count_, texts_, suffix_, each
end

-- Let the event with this number trim the stream: entries may go that end before event `first`, which is text.
function writes.trim_events(first, at)
  trim_to, trim_at = first, at or events + 1
end

-- Texts of several events together, without the line break before the first.
local function joined(from, to)
  event_texts[from] = string.gsub(event_texts[from], '^\n', '')
  return table.concat(event_texts, '', from, to)
end

-- The entry of the stream whose first event is the one with this number: its id, and its events as text, one a line. And
-- which event the entry must keep, if it trims the stream.
local function entry_of(first)
  local last = first + PACK > events and events or first + PACK - 1
  local said = event_texts[first]
  if parts > 1 then
    said = joined(parts * (first - 1) + 1, parts * last)
  elseif first < last then
    said = table.concat(event_texts, '\n', first, last)
  end
  return store.seq_text(last - events) .. suffix, said, trim_to and trim_at >= first and trim_at <= last and trim_to
end

-- Put off the deletion of a key.
function writes.delete(key)
  deleted = true
  writes.put_off('DEL', key)
end

-- The arguments of a write that was put off, as a list. (Keys alone have no key of their own: DEL and MSET.)
local function words_of(at)
  local words, first = {later[at + 1]}, later[at + 3]
  if later[at + 2] then
    words[2] = later[at + 2]
  end
  for _, value in ipairs(type(first) == 'table' and first or {first, later[at + 4], later[at + 5]}) do
    words[#words + 1] = value or nil
  end
  return words
end

-- Do one of the writes that were put off, one with fewer than two values or with a list.
local function write_one(command, key, one)
  if not command then
    return -- it was done early
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

local function note(command, key, one, two)
  local at = undoings
  undone[at + 1], undone[at + 2], undone[at + 3], undone[at + 4] = command, key, one, two or false
  undoings = at + 4
end

-- Note how the members of a sorted set are put back; `first` and `step` say where they stand among the values. A member of
-- the complete jobs is always new: it begins with the sequence of the completion.
local function note_scores(key, values, first, step)
  for i = first, #values, step do
    local score = not (key == keys.completed and step == 2) and redis.call('ZSCORE', key, values[i])
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

-- Count a number up now, and give it.
function writes.next_number(key)
  reading = key
  local number = redis.call('INCRBY', key, '1')
  note('INCRBY', key, '-1')
  return number
end

-- Take the first entries off a sorted set, each as its member and its score.
function writes.pop_first(key, most)
  if count > 0 or store.many or blocked then
    writes.settle(key)
  end
  reading = key
  local found
  if most then
    found = redis.call('ZPOPMIN', key, most)
  else
    found = redis.call('ZPOPMIN', key)
  end
  local at = undoings
  undone[at + 1], undone[at + 2], undone[at + 3], undone[at + 4] = 'ZPOPMIN', key, found, false
  undoings = at + 4
  return found
end

-- Note what was taken off a sorted set last.
function writes.note_popped(key, found)
  note('ZPOPMIN', key, found)
end

-- The words that put back what was popped, which is members and scores.
local function putting_back(key, popped)
  local words = {'ZADD', key}
  for i = 1, #popped, 2 do
    words[i + 2], words[i + 3] = popped[i + 1], popped[i]
  end
  return words
end

-- Put what was popped last back, because the step begins anew.
function writes.put_back(key, popped)
  redis.call(unpack(putting_back(key, popped)))
  undoings = undoings - 4
end

-- Do writes of a command to a key now.
local function early(command, key, values)
  reading = key
  if UNDO[command] then
    UNDO[command](key, values)
  end
  for first = 1, #values, CHUNK do
    redis.call(command, key, unpack(values, first, math.min(first + CHUNK - 1, #values)))
  end
  if command == 'RPUSH' then
    note('LTRIM', key, '0', store.text(-1 - #values))
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
local LISTS = {
  LRANGE = true, ZRANGE = true, ZRANGEBYSCORE = true, ZREVRANGE = true, ZMSCORE = true, HGETALL = true, HKEYS = true,
}

-- How to write all of a key again, and how to read it, by the command that is its next one.
local HASH, SORTED_SET = {'HSET', 'HGETALL'}, {'ZADD', 'ZRANGE', '0', '-1', 'WITHSCORES'}
local WHOLE = {
  HSET = HASH, HDEL = HASH, HINCRBY = HASH, ZADD = SORTED_SET, ZREM = SORTED_SET, ZINCRBY = SORTED_SET,
  RPUSH = {'RPUSH', 'LRANGE', '0', '-1'},
}

-- Do a deletion now, because the key has a later write that is early.
local function delete_early(key, at, follower)
  local way = WHOLE[follower]
  if way then
    local found = redis.call(way[2], key, unpack(way, 3))
    if way[1] == 'ZADD' then
      for i = 1, #found, 2 do
        found[i], found[i + 1] = found[i + 1], found[i]
      end
    end
    for first = #found - (#found - 1) % CHUNK, 1, -CHUNK do -- the last is undone first
      note(way[1], key, {unpack(found, first, math.min(first + CHUNK - 1, #found))})
    end
  end
  later[at + 1], later[at + 4], later[at + 5] = false, false, false
  redis.call('DEL', key)
end

-- Do a write of a key now, unless it says by itself what the key holds; give where that one is.
local function settle_one(key, at, whole)
  local command = later[at + 1]
  if command == 'DEL' or command == 'SET' then
    return at
  elseif not command then
    return whole
  elseif whole and later[whole + 1] == 'DEL' then
    delete_early(key, whole, command)
  end
  local words = words_of(at)
  later[at + 1], later[at + 4], later[at + 5] = false, false, false
  early(command, key, {unpack(words, 3)})
end

-- Do the writes of one key now that were put off, before the key is read. Give where the last one is if it is
-- not done, because it says by itself what the key holds: a deletion, or a text.
function writes.settle(key)
  if blocked and blocked[key] then
    writes.fail(key, 'it has writes of an earlier step that failed')
  end
  local whole
  if places or count > LONG then
    if not places then
      find_by_key()
    end
    local of = places[key]
    for i = 1, of and #of or 0 do
      whole = settle_one(key, of[i], whole)
    end
    places[key] = whole and {whole}
  else
    for at = 0, count - PLACES, PLACES do
      if later[at + 2] == key then
        whole = settle_one(key, at, whole)
      end
    end
  end
  if store.many then
    settle_gathered(store.removed, 'ZREM', key)
    settle_gathered(store.added, 'ZADD', key)
    settle_gathered(store.dropped, 'HDEL', key)
    settle_gathered(store.set, 'HSET', key)
  end
  return whole
end

-- Append a text, or several, to a list now, and give its length.
function writes.append(key, text, several)
  if deleted or blocked then
    local whole = writes.settle(key)
    if whole then
      delete_early(key, whole, 'RPUSH')
    end
  end
  reading = key
  local length
  if several then
    length = redis.call('RPUSH', key, unpack(several))
    note('LTRIM', key, '0', store.text(-1 - #several))
  else
    length = redis.call('RPUSH', key, text)
    local at = undoings
    undone[at + 1], undone[at + 2], undone[at + 3], undone[at + 4] = 'LTRIM', key, '0', '-2'
    undoings = at + 4
  end
  return length
end

-- Call a command that reads a key, after the writes that were put off for it.
function writes.fetch(command, key, ...)
  reading = key
  if count > 0 or store.many or blocked then
    local whole = writes.settle(key)
    if whole and later[whole + 1] == 'SET' then
      return later[whole + 3]
    elseif whole then
      return LISTS[command] and {} or NOTHING[command] or false
    end
  end
  return redis.call(command, key, ...)
end

-- Drop a member of a list whose job has no record, and remember its id for `qmodel doctor`.
function writes.drop(key, member, jid)
  writes.put_off('ZREM', key, member)
  writes.put_off('ZADD', keys.dropped, store.seq, keys.job(jid))
end

-- The sequence and the epoch of the last event in the stream, or 0 and 0.
function writes.top()
  local last = writes.fetch('XREVRANGE', keys.events, '+', '-', 'COUNT', 1)[1]
  local seq, epoch = string.match(last and last[1] or '0-0', '^(%d+)-(%d+)$')
  return tonumber(seq), epoch
end

function writes.put_off_all(all, command)
  for key, values in pairs(all) do
    writes.put_off_many(command, key, values, #values)
  end
end

-- What is wrong with a key, as the text of an error. A tab ends the key, which may hold spaces.
local function corrupt(key, what)
  return 'CORRUPT ' .. key .. '\t' .. string.gsub(what, '\t', ': ')
end

-- End the call with an error that names a key.
function writes.fail(key, what)
  error(corrupt(key, what), 0)
end

-- Refuse a step that writes to a key with writes that failed, or deletes it, alone or with others.
local function stop_at_blocked()
  for at = 0, count - PLACES, PLACES do
    local command, key, deleted = later[at + 1], later[at + 2], later[at + 3]
    for _, one in ipairs(key and {key} or command == 'DEL' and deleted or {}) do
      if command and blocked[one] then
        writes.fail(one, 'it has writes of an earlier step that failed')
      end
    end
  end
end

-- Write the buffered texts: the first write that lasts. If a key has several, MSET keeps the last, as it should.
local function flush_texts(written, size)
  if size == 4 then
    redis.call('MSET', written[1], written[2], written[3], written[4])
  elseif size > CHUNK then
    for first = CHUNK + 1, size, CHUNK do
      writes.put_off('MSET', false, {unpack(written, first, math.min(first + CHUNK - 1, size))})
    end
    redis.call('MSET', unpack(written, 1, CHUNK))
  elseif size > 0 then
    redis.call('MSET', unpack(written, 1, size))
  end
end

-- Write the texts, and do what was put off.
function writes.commit(written, size)
  if blocked then
    stop_at_blocked()
  end
  texts = size > 0
  flush_texts(written, size)
  for first = 1, events, PACK do
    done = first - events - 1
    local id, said, low = entry_of(first)
    if low then
      redis.call('XADD', keys.events, 'MINID', '~', low, id, 'e', said)
    else
      redis.call('XADD', keys.events, id, 'e', said)
    end
  end
  for at = 0, count - PLACES, PLACES do
    done = at
    local key, one, two, three = later[at + 2], later[at + 3], later[at + 4], later[at + 5]
    if three then
      redis.call(later[at + 1], key, one, two, three)
    elseif two then
      redis.call(later[at + 1], key, one, two)
    else
      write_one(later[at + 1], key, one)
    end
  end
end

-- ---- the end of a plain operation (ops/plain.lua)
--
-- Its last writes are tried at once, and only put off if they fail, so that writes.recover tries them again. If anything
-- was put off before, these are put off too.

local direct, fault = false, false -- whether the last writes are tried at once; the first error of them

writes.left = true -- whether the end of the operation has anything to write, or to complete

-- Write the texts and the events. What follows are calls of writes.last, and then writes.end_.
function writes.begin_last(written, size)
  direct = count == 0 and events <= PACK
  writes.left = not direct
  if direct then
    texts, fault = true, false
    flush_texts(written, size)
    done = 0
    if events == 0 then
      return
    end
    local id, said, low = entry_of(1)
    local reply
    if low then
      reply = redis.pcall('XADD', keys.events, 'MINID', '~', low, id, 'e', said)
    else
      reply = redis.pcall('XADD', keys.events, id, 'e', said)
    end
    if type(reply) == 'table' then
      fault, done, writes.left = reply.err, -events, true
    end
  end
end

-- Write two texts and the only event at once, if nothing was put off; say whether.
function writes.begin_last_two(one, text, two, other, seq, suffix_, said)
  if count > 0 or events > 0 then
    return false
  end
  direct, texts, fault, writes.left = true, true, false, false
  redis.call('MSET', one, text, two, other)
  done = 0
  local reply = redis.pcall('XADD', keys.events, seq .. suffix_, 'e', said)
  if type(reply) == 'table' then
    writes.put_off_event(suffix_, said)
    fault, done, writes.left = reply.err, -1, true
  end
  return true
end

-- Put off one of the last writes.
local function put_off_last(command, key, one, two, three, four)
  if four then
    writes.put_off(command, key, {one, two, three, four})
  else
    writes.put_off(command, key, one, two)
  end
end

-- Do one of the last writes, of one, two or four values; its reply is a number or text.
function writes.last(command, key, one, two, three, four)
  if not direct then
    return put_off_last(command, key, one, two, three, four)
  end
  local reply
  if four then
    reply = redis.pcall(command, key, one, two, three, four)
  elseif two then
    reply = redis.pcall(command, key, one, two)
  else
    reply = redis.pcall(command, key, one)
  end
  if reply ~= 1 and type(reply) == 'table' then
    put_off_last(command, key, one, two, three, four)
    fault, writes.left = fault or reply.err, true
  end
end

-- The same for a command with many values.
function writes.last_many(command, key, values)
  local reply = direct and redis.pcall(command, key, unpack(values))
  if not reply or type(reply) == 'table' then
    writes.put_off_many(command, key, values, #values)
    fault, writes.left = fault or reply and reply.err, true
  end
end

-- Do what was put off, or stop with the error of a write that has failed.
function writes.end_(written, size)
  if direct then
    error(fault, 0)
  end
  writes.commit(written, size)
end

-- ---- a plain operation in a row
--
-- It calls its commands without any note. Only if one of them fails is told here what it has done.

-- Stop before the texts are written: a command for a key has failed, after `popped` was taken off a sorted set, if it was.
function writes.stop_early(key, reply, work_key, popped)
  store.begin_plain()
  if popped then
    note('ZPOPMIN', work_key, popped)
  end
  reading = key
  error(reply.err, 0)
end

-- Check the replies to the entry of the events and to the other last writes, each with its command, after the texts were
-- written: if one of them has failed, stop, and leave the reply of the operation in plain.answer.
function writes.check_late(answer, seq, said, replies_, commands)
  local failed = false
  for i = 1, #replies_ do
    failed = failed or type(replies_[i]) == 'table' and replies_[i].err
  end
  if not failed then
    return
  end
  plain.answer = answer
  store.begin_plain()
  store.seq, texts, done = seq, true, 0
  if type(replies_[1]) == 'table' then
    writes.put_off_events(store.suffix, said, #said, 1)
    done = -#said
  end
  for i, words in ipairs(commands) do
    if type(replies_[i + 1]) == 'table' then
      writes.put_off_many(words[1], words[2], {unpack(words, 3)}, #words - 2)
    end
  end
  error(failed, 0)
end

-- ---- after an error

-- What undoes an early write; nothing, if it has taken nothing.
local function undoing(at)
  local command, key, values = undone[at + 1], undone[at + 2], undone[at + 3]
  if command == 'ZPOPMIN' then -- these are its replies
    return values[1] and putting_back(key, values)
  elseif type(values) == 'table' then
    return {command, key, unpack(values)}
  end
  return {command, key, values, undone[at + 4] or nil}
end

-- Undo the early writes of a plain operation that turned out not to be plain.
function writes.take_back()
  while undoings > 0 do
    local words = undoing(undoings - 4)
    if words then
      redis.call(unpack(words))
    end
    undoings = undoings - 4
  end
end

-- Undo the early writes, last first; give those whose undoing failed, and all that follow on the same key.
local function undo()
  local commands = {}
  for at = undoings - 4, 0, -4 do
    commands[#commands + 1] = undoing(at) or nil
  end
  undoings = 0
  return intent.try_all(commands)
end

-- Try the writes that were put off, from the one that failed on; give those that failed.
local function go_on()
  local commands = {}
  for first = events + 1 + math.min(done, 0), events, PACK do
    local id, said = entry_of(first)
    commands[#commands + 1] = {'XADD', keys.events, id, 'e', said}
  end
  for at = math.max(done, 0), count - PLACES, PLACES do
    if later[at + 1] then
      commands[#commands + 1] = words_of(at)
    end
  end
  local seq = store.seq
  local left = intent.try_all(commands)
  if not left[1] and store.seq ~= seq then
    intent.try({'MSET', keys.counters, (store.pending and '!' or '') .. store.counters_text()})
  end
  return left
end

-- Whether the step came to its first write that lasts.
function writes.has_begun()
  return done and (texts or done > -events)
end

-- Undo what a step that is refused has done early, and forget what it has put off; give an error if that failed.
function writes.forget()
  count, events = 0, 0
  if undoings > 0 then
    return writes.recover('a refused step could not be undone', true)
  end
end

-- Repair a step that an error has stopped: undo it, or complete it, or keep what is left to do. Give the text of the
-- error, or nil if the step is complete.
function writes.recover(fault, refused)
  local begun = writes.has_begun()
  local left = begun and go_on() or undo()
  queues.unknown()
  store.unknown()
  if begun and not left[1] then
    return nil
  end
  local key = begun and left[1][2] or done and (done < 0 and keys.events or later[done + 2]) or reading or keys.counters
  if left[1] then
    local counters = begun and store.counters_text() or store.counters or store.NONE
    counters = string.gsub(counters, '^!', '')
    local what = begun and 'the step is kept: the next call completes it' or 'nothing was changed, but the next call has to undo a part'
    what = intent.keep(left, counters) and what or 'the step is half done'
    return corrupt(key, what .. ': ' .. left[1][1] .. ' failed: ' .. fault)
  elseif string.find(fault, '^WRONGTYPE') then
    return corrupt(key, 'nothing was changed: it is of another type: ' .. fault)
  end
  return not refused and fault or nil
end

-- Keep calls away from the keys of commands that still fail.
function writes.block(left)
  if not left[1] then
    return
  end
  blocked = {}
  if #left > catalogue.most then
    writes.fail(keys.intent, 'too many writes of earlier steps still fail')
  end
  for _, words in ipairs(left) do
    if words[1] == 'DEL' or words[1] == 'MSET' or words[1] == 'XADD' then
      writes.fail(words[2], 'a write of an earlier step still fails: ' .. words[1])
    end
    blocked[words[2]] = true
  end
end

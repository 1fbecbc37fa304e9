#!lua name=least

-- The least that qmodel's promises cost: a lifecycle with its commands and its texts, which decides what must be decided
-- for a plain job, and nothing else. One namespace, one queue, no option; what a decision would have to do that does not
-- come out plain is left out. Each stage is one function, because a call of a function costs as much as five lines.
--
-- It is the bound that a shorter library could reach; `same.lua` has the commands alone.

local COUNTERS, CONFIG, EVENTS, COMPLETED = 'le:counters', 'le:config', 'le:events', 'le:completed'
local JOB, STATE, WORK, LOCKS, WORKER = 'le:j:', 'le:q:emails-state', 'le:q:emails-work', 'le:q:emails-locks', 'le:w:worker-1:jobs'
local WAITS, RUNS = 'le:s:wait-new:1795219200000:emails', 'le:s:run-new:1795219200000:emails'
local BOUNDS, LEASE_MS, INLINE = '\t0\t1\t4201\t1795899527303\t0\t0\t0', 60000, 1024
local WAITING = '^waiting\t%d+\t1\t0\t%C+\t((%d+)\t%d+\t%d+)\t\t%d+\t\t%d+\t0\t0\t()'
local RUNNING = '^running\t(%d+)\t2\t0\t(%C+)\t(%d+\t(%d+))\t%d+\t(%C+)\t(%d+)\t(%C*)\t(%d+)\t%d+\t0\t()'
local BLANKS = '                                                            '

local names = {['emails'] = true, ['SendEmail'] = true, ['worker-1'] = true} -- which were looked at before
local known, state, seq = false, false, 0 -- the counters and the queue's state as they were left; the last sequence
local ms, moment = 0, '' -- the moment of the last call, and its text
local call, try, find, match, sub, format -- bound by the first call

-- The server's clock.
local function clock()
  local time = call('TIME')
  local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
  if now ~= ms then
    ms, moment = now, format('%d', now)
  end
end

-- Whether texts are ids.
local function is_id(text, most)
  return #text <= most and find(text, '^[!-~]+$')
end

-- The counters behind the next events, whose last sequence is given as text.
local function count(more)
  seq = seq + more
  local id = format('%d', seq)
  known = id .. BOUNDS
  return id
end

-- Stop if one of the writes behind the texts has failed.
local function check(one, two, three, four)
  if type(one) == 'table' or type(two) == 'table' or type(three) == 'table' or type(four) == 'table' then
    error('a write has failed')
  end
end

local function put(a)
  local request, name, jid, klass, data = a[1], a[2], a[3], a[4], a[5]
  if a[6] or #data > INLINE or not names[name] or not names[klass] or not is_id(jid, 128) or not is_id(request, 64) then
    return nil
  end
  clock()
  local key = JOB .. jid
  local found = call('MGET', COUNTERS, CONFIG, key, STATE)
  if found[1] ~= known or found[2] or found[3] or found[4] ~= state then
    return nil
  end
  local id = count(1)
  call('MSET', key, 'waiting\t' .. id .. '\t1\t0\t' .. name .. '\t' .. moment .. '\t5\t5\t\t0\t\t0\t0\t0\t' .. klass
    .. '\t0\t' .. moment .. '\t' .. request .. '\t' .. #data .. '\n' .. data .. 'put\t' .. moment .. '\t' .. name .. '\n',
    COUNTERS, known)
  local one = try('XADD', EVENTS, id, 'e', moment .. '\tput\t' .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting')
  local two = try('ZADD', WORK, '0', '0' .. moment .. id .. sub(BLANKS, 1, 20 - #id) .. jid)
  check(one, two)
  return jid
end

local function pop(a)
  local request, name, worker = a[1], a[2], a[3]
  if a[4] or not names[name] or not names[worker] or not is_id(request, 64) then
    return nil
  end
  clock()
  local found, grant = call('MGET', COUNTERS, CONFIG, STATE), 'r' .. request
  if found[1] ~= known or found[2] or found[3] ~= state or call('HMGET', WORKER, '', grant)[2] then
    return nil
  end
  local jid = match(call('ZPOPMIN', WORK)[1], '%s(%S+)$')
  local key = JOB .. jid
  local before = call('GET', key)
  local tries, ready_at, at = match(before, WAITING)
  if not tries then
    return nil
  end
  local waited, ends = format('%d', ms - ready_at), format('%d', ms + LEASE_MS)
  call('RPUSH', WAITS, waited)
  local id = count(1)
  local record = 'running\t' .. id .. '\t2\t0\t' .. name .. '\t' .. tries .. '\t' .. worker .. '\t' .. id .. '\t' .. request .. '\t' .. moment
    .. '\t' .. ends .. '\t0\t' .. sub(before, at) .. 'popped\t' .. moment .. '\t' .. worker .. '\t' .. id .. '\n'
  call('MSET', key, record, COUNTERS, known)
  local one = try('XADD', EVENTS, id, 'e', moment .. '\tpopped\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. waited)
  local two = try('ZADD', LOCKS, ends, id .. sub(BLANKS, 1, 33 - #id) .. jid)
  local three = try('HSET', WORKER, 'j' .. jid, id, grant, jid)
  check(one, two, three)
  return jid .. '\trunning\t' .. #record .. '\n' .. record
end

local function complete(a)
  local jid, token = a[1], a[2]
  if a[3] then
    return nil
  end
  clock()
  local key = JOB .. jid
  local found = call('MGET', COUNTERS, CONFIG, key)
  local lease, name, tries, retries, worker, held, grant, popped_at, at = match(found[3] or '', RUNNING)
  if found[1] ~= known or found[2] or held ~= token then
    return nil
  end
  local ran = format('%d', ms - popped_at)
  call('RPUSH', RUNS, ran .. ' 1258')
  local id = count(1)
  call('MSET', key, 'complete\t' .. id .. '\t3\t0\t' .. name .. '\t' .. tries .. '\t' .. retries .. '\t\t' .. held .. '\t\t' .. popped_at
    .. '\t0\t' .. moment .. '\t' .. sub(found[3], at) .. 'completed\t' .. moment .. '\t' .. held .. '\tcomplete\n', COUNTERS, known)
  local one = try(
    'XADD', EVENTS, id, 'e', moment .. '\tcompleted\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. held .. '\t' .. ran)
  local two = try('ZREM', LOCKS, lease .. sub(BLANKS, 1, 33 - #lease) .. jid)
  local three = try('HDEL', WORKER, 'j' .. jid, 'r' .. grant)
  local four = try('ZADD', COMPLETED, moment, id .. sub(BLANKS, 1, 14 - #id) .. jid)
  check(one, two, three, four)
  return 'complete'
end

-- ---- a hundred jobs a call

-- The sequences of the next events, as texts.
local function next_ids(most)
  local ids = {}
  for i = 1, most do
    ids[i] = format('%d', seq + i)
  end
  count(most)
  return ids
end

-- Put jobs: a request and a queue, then the id, the job type and the data of each.
local function put_many(a)
  local request, name, wanted, met = a[1], a[2], {COUNTERS, CONFIG, STATE}, {}
  if not names[name] or not is_id(request, 64) then
    return nil
  end
  for i = 3, #a, 3 do
    local jid = a[i]
    if not names[a[i + 1]] or #a[i + 2] > INLINE or met[jid] or not is_id(jid, 128) then
      return nil
    end
    met[jid], wanted[#wanted + 1] = true, JOB .. jid
  end
  clock()
  local found = call('MGET', unpack(wanted))
  if found[1] ~= known or found[2] or found[3] ~= state then
    return nil
  end
  local texts, members, said, jids = {}, {}, {}, {}
  local ids, head, middle = next_ids(#wanted - 3), moment .. '\tput\t', '\t0\t' .. moment .. '\t' .. request .. '\t'
  local first, last = '\t1\t0\t' .. name .. '\t' .. moment .. '\t5\t5\t\t0\t\t0\t0\t0\t', 'put\t' .. moment .. '\t' .. name .. '\n'
  for i = 1, #ids do
    if found[i + 3] then
      return nil
    end
    local id, jid, klass, data = ids[i], a[3 * i], a[3 * i + 1], a[3 * i + 2]
    texts[2 * i - 1], texts[2 * i] = wanted[i + 3], 'waiting\t' .. id .. first .. klass .. middle .. #data .. '\n' .. data .. last
    members[2 * i - 1], members[2 * i] = '0', '0' .. moment .. id .. sub(BLANKS, 1, 20 - #id) .. jid
    said[i], jids[i] = head .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting', jid
  end
  texts[#texts + 1], texts[#texts + 2] = COUNTERS, known
  call('MSET', unpack(texts))
  check(try('XADD', EVENTS, ids[#ids], 'e', table.concat(said, '\n')), try('ZADD', WORK, unpack(members)))
  return {'OK', jids}
end

-- Pop so many jobs: a request, a queue, a worker and the number.
local function pop_many(a)
  local request, name, worker = a[1], a[2], a[3]
  if not names[name] or not names[worker] or not is_id(request, 64) then
    return nil
  end
  clock()
  local found, grant = call('MGET', COUNTERS, CONFIG, STATE), 'r' .. request
  if found[1] ~= known or found[2] or found[3] ~= state or call('HMGET', WORKER, '', grant)[2] then
    return nil
  end
  local popped, jids, wanted = call('ZPOPMIN', WORK, a[4]), {}, {}
  for i = 1, #popped / 2 do
    jids[i] = match(popped[2 * i - 1], '%s(%S+)$')
    wanted[i] = JOB .. jids[i]
  end
  local texts, locks, fields, said, waits, shown, before = {}, {}, {}, {}, {}, {}, call('MGET', unpack(wanted))
  local ids, ends, facts = next_ids(#jids), format('%d', ms + LEASE_MS), '\t' .. name .. '\t' .. worker .. '\t'
  local times, last = '\t' .. request .. '\t' .. moment .. '\t' .. ends .. '\t0\t', 'popped\t' .. moment .. '\t' .. worker .. '\t'
  local head, first, by = moment .. '\tpopped\t', '\t2\t0\t' .. name .. '\t', '\t' .. worker .. '\t'
  for i = 1, #jids do
    local id, jid, tries, ready_at, at = ids[i], jids[i], match(before[i], WAITING)
    waits[i] = format('%d', ms - ready_at)
    local record = 'running\t' .. id .. first .. tries .. by .. id .. times .. sub(before[i], at) .. last .. id .. '\n'
    texts[2 * i - 1], texts[2 * i], locks[2 * i - 1], locks[2 * i] = wanted[i], record, ends, id .. sub(BLANKS, 1, 33 - #id) .. jid
    fields[2 * i - 1], fields[2 * i], said[i] = 'j' .. jid, id, head .. jid .. facts .. waits[i]
    shown[3 * i - 2], shown[3 * i - 1], shown[3 * i] = jid .. '\trunning\t' .. #record, '\n', record
  end
  call('RPUSH', WAITS, unpack(waits))
  texts[#texts + 1], texts[#texts + 2], fields[#fields + 1], fields[#fields + 2] = COUNTERS, known, grant, table.concat(jids, ' ')
  call('MSET', unpack(texts))
  local one = try('XADD', EVENTS, ids[#ids], 'e', table.concat(said, '\n'))
  check(one, try('ZADD', LOCKS, unpack(locks)), try('HSET', WORKER, unpack(fields)))
  return table.concat(shown)
end

-- Complete jobs: the id and the token of each.
local function complete_many(a)
  local jids, wanted, met = {}, {COUNTERS, CONFIG}, {}
  for i = 1, #a, 2 do
    jids[#jids + 1], wanted[#wanted + 1] = a[i], JOB .. a[i]
    if met[a[i]] then
      return nil
    end
    met[a[i]] = true
  end
  clock()
  local found = call('MGET', unpack(wanted))
  if found[1] ~= known or found[2] then
    return nil
  end
  local texts, locks, fields, said, runs, done, ended = {}, {}, {}, {}, {}, {}, {}
  local ids, head, at_end = next_ids(#jids), moment .. '\tcompleted\t', 'completed\t' .. moment .. '\t'
  for i = 1, #jids do
    local id, jid, record = ids[i], jids[i], found[i + 2]
    local lease, name, tries, retries, worker, held, grant, popped_at, at = match(record or '', RUNNING)
    if held ~= a[2 * i] then
      return nil
    end
    local ran = format('%d', ms - popped_at)
    texts[2 * i - 1], texts[2 * i] = wanted[i + 2], 'complete\t' .. id .. '\t3\t0\t' .. name .. '\t' .. tries .. '\t' .. retries .. '\t\t'
      .. held .. '\t\t' .. popped_at .. '\t0\t' .. moment .. '\t' .. sub(record, at) .. at_end .. held .. '\tcomplete\n'
    said[i], runs[i] = head .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. held .. '\t' .. ran, ran .. ' 1258'
    locks[i], fields[2 * i - 1], fields[2 * i] = lease .. sub(BLANKS, 1, 33 - #lease) .. jid, 'j' .. jid, 'r' .. grant
    done[2 * i - 1], done[2 * i], ended[i] = moment, id .. sub(BLANKS, 1, 14 - #id) .. jid, 'complete'
  end
  call('RPUSH', RUNS, unpack(runs))
  texts[#texts + 1], texts[#texts + 2] = COUNTERS, known
  call('MSET', unpack(texts))
  local one = try('XADD', EVENTS, ids[#ids], 'e', table.concat(said, '\n'))
  check(one, try('ZREM', LOCKS, unpack(locks)), try('HDEL', WORKER, unpack(fields)), try('ZADD', COMPLETED, unpack(done)))
  return {'OK', ended}
end

-- Begin an empty namespace.
local function begin()
  call, try, find, match, sub, format = redis.call, redis.pcall, string.find, string.match, string.sub, string.format
  clock()
  state = moment .. '\t0\t0\t99999999999999'
  seq = 1
  call('DEL', EVENTS, COMPLETED, WORK, LOCKS, WORKER, WAITS, RUNS)
  count(0)
  call('MSET', COUNTERS, known, STATE, state)
  call('HSET', WORKER, '', moment .. sub(BLANKS, 1, 52))
  return 'OK'
end

-- An answer, or an error if a decision does not come out plain.
local function answer(stage)
  return function(_, a)
    local done, reply = pcall(stage, a)
    return done and reply or {err = 'ERR ' .. tostring(reply)}
  end
end

redis.register_function('least_begin', begin)
redis.register_function('least_put', answer(put))
redis.register_function('least_pop', answer(pop))
redis.register_function('least_complete', answer(complete))
redis.register_function('least_put_many', answer(put_many))
redis.register_function('least_pop_many', answer(pop_many))
redis.register_function('least_complete_many', answer(complete_many))

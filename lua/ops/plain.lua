-- Plain jobs: put, pop and complete where nothing special is asked for, is set, or is due.
--
-- Most calls are plain, and for them the verbs decide hundreds of things that are known beforehand. So each function here
-- does one operation in the plain case, and writes the same texts as its verb. It leaves the reply in plain.answer, or
-- nothing where anything is not plain: then it has changed nothing, and the verb does the operation.
-- tests/property/test_plain.py compares the keys that both leave, byte for byte.
--
-- A function here never refuses: a call that must be refused is not plain. A command that fails is undone or completed as
-- in a verb (state/writes.lua).

local plain = {}

plain.answer = false -- the reply, from the first write that lasts on

local INLINE = 1024 -- the most bytes of data within a record
local SHORT = 999 -- the most bytes of a result
local RETIRED = 100 -- the most jobs that one completion deletes
local SHY = 16 -- how many pops leave a queue to the verb after a job that was not plain

local shy_key, shy = false, 0 -- the order whose last job was not plain, and how many pops leave it to the verb

-- The time from a moment, which is text, until now.
local function since(now, moment)
  local passed = now - moment
  return passed > 0 and passed or 0
end

-- ---- put

-- Put a new job into a listed queue for which no worker waits.
function plain.put(_, moment, args, simulated)
  local request, name, jid, klass, data = args[2], args[3], args[4], args[5], args[6]
  local names = arguments.names
  if args[7] or not data or #data > INLINE or not names[name] or not names[klass] or not arguments.is_id(jid, 128)
    or request ~= '' and not arguments.is_id(request, 64) then
    return nil
  end
  local key = keys.job(jid)
  local quiet, found, state = store.open_plain(simulated, key, queues.state_key(name))
  local queue = queues.begin(name, state)
  if not quiet or found or queue.first_seen == '' or queue.idle ~= '0' then
    return nil
  end

  local _, id = store.tell(moment .. '\tput\t' .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting')
  plain.answer = {'OK', jid}
  store.write_plain(key, plain_records.waiting(id, name, moment, klass, request, data), id)
  writes.last('ZADD', queue.work_key, '0', keys.ready_member(moment, id, jid))
  store.end_plain(simulated)
end

-- The ids of the jobs of a batch, or nil if they are not plain jobs for one queue. A job is `jobs 4 queue jid klass data`.
-- The keys of the jobs are added to a list.
local function new_jids(args, name, wanted)
  local jids, met, count, names = {}, {}, 0, arguments.names
  for at = 3, #args, 6 do
    local jid, data = args[at + 3], args[at + 5]
    if args[at] ~= 'jobs' or args[at + 1] ~= '4' or args[at + 2] ~= name or not names[args[at + 4]] or not data
      or #data > INLINE or met[jid] or not arguments.is_id(jid, 128) then
      return nil
    end
    count = count + 1
    met[jid] = true
    jids[count], wanted[count + 4] = jid, keys.job(jid)
  end
  return count <= catalogue.most and jids
end

-- Read what a batch of puts needs; give the queue, or nil if the puts are not plain.
local function open_puts(name, count, wanted, simulated)
  wanted[4] = queues.state_key(name)
  local quiet, found = store.open_all_plain(simulated, wanted)
  local queue = queues.begin(name, found[4])
  if not quiet or queue.first_seen == '' or queue.idle ~= '0' then
    return nil
  end
  for i = 1, count do
    if found[i + 4] then
      return nil
    end
  end
  return queue
end

-- Put new jobs into a listed queue for which no worker waits.
function plain.put_many(_, moment, args, simulated)
  local request, name, wanted = args[2], args[5], {false, false, false, false}
  if not name or not arguments.names[name] or request ~= '' and not arguments.is_id(request, 64) then
    return nil
  end
  local jids = new_jids(args, name, wanted)
  local queue = jids and open_puts(name, #jids, wanted, simulated)
  if not queue then
    return nil
  end

  local members, texts, ids, said, head = {}, {}, {}, {}, moment .. '\tput\t'
  for i = 1, #jids do
    local jid, klass, data, id, at = jids[i], args[6 * i + 1], args[6 * i + 2], store.next_id(), 2 * i
    ids[i], said[i] = id, head .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting'
    members[at - 1], members[at] = '0', keys.ready_member(moment, id, jid)
    texts[at - 1], texts[at] = wanted[i + 4], plain_records.waiting(id, name, moment, klass, request, data)
  end
  store.tell_all(ids, said)
  writes.put_off_many('ZADD', queue.work_key, members, #members)
  plain.answer = {'OK', jids}
  store.write_all_plain(texts)
  store.end_plain(simulated)
end

-- ---- pop

-- How many jobs a pop asks for at most; nil, if it asks for anything else.
local function count_of(args)
  local count = 1
  for at = 5, #args, 2 do
    if args[at] == 'count' then
      count = arguments.whole(args[at + 1], 1, catalogue.most)
    elseif args[at] ~= 'wait' or args[at + 1] ~= '1' and args[at + 1] ~= '0' then
      return nil
    end
  end
  return count
end

-- Whether a queue has nothing but leases and ready jobs, and a lease until `expires` would not be the first to end.
local function is_calm(now, queue, name, expires)
  return queue.paused == '0' and queue.due > now and queue.due <= expires and not queue.admits_at
    and not config.owns(name)
end

-- Leave a queue to the verb for a while, whose first job is not plain.
local function leave(work_key, popped)
  shy_key, shy = work_key, SHY
  writes.put_back(work_key, popped)
end

-- Lease the first job of a queue to a worker.
local function lease(now, moment, queue, worker, request, ends, simulated)
  local popped = writes.pop_first(queue.work_key, '1')
  if not popped[1] then
    return nil
  end
  local jid = keys.ready_jid_of(popped[1])
  local key = keys.job(jid)
  local text = writes.fetch('GET', key)
  local stages, more, tries, ready_at, at = plain_records.read_waiting(text)
  if not stages then
    return leave(queue.work_key, popped)
  end

  local name, waited = queue.name, store.text(since(now, ready_at))
  workers.seen(now, worker)
  stats.waited_one(now, name, waited)
  local _, id = store.tell(moment .. '\tpopped\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. waited)
  text = plain_records.running(
    id, stages, more, name, tries, worker, epochs.token_of(id), request, moment, ends, text, at)
  plain.answer = {'OK', {{jid, 'running', text}}}
  store.write_plain(key, text, id)
  writes.last('ZADD', queue.locks_key, ends, keys.lease_member(id, jid))
  writes.last('HSET', keys.worker(worker), {'j' .. jid, id, 'r' .. request, jid})
  store.end_plain(simulated)
end

-- Take the first jobs of an order; give their ids, keys and records, or nil if one of them is not plain.
local function take_many(work_key, count)
  local popped = writes.pop_first(work_key, store.text(count))
  if not popped[1] then
    return nil
  end
  local jids, job_keys = {}, {}
  for i = 1, #popped, 2 do
    local jid, at = keys.ready_jid_of(popped[i]), (i + 1) / 2
    jids[at], job_keys[at] = jid, keys.job(jid)
  end
  local texts, all = store.read_all(job_keys), {}
  for i = 1, #jids do
    all[i] = {plain_records.read_waiting(texts[i])}
    if all[i][2] ~= '0' then
      return leave(work_key, popped)
    end
  end
  return jids, job_keys, texts, all
end

-- Lease the first jobs of a queue to a worker.
local function lease_many(now, moment, queue, worker, request, ends, simulated, count)
  local jids, job_keys, texts, all = take_many(queue.work_key, count)
  if not jids then
    return nil
  end

  budget.spend(2 * #jids)
  workers.seen(now, worker)
  local name, locks, fields, waits, shown, written, ids, said = queue.name, {}, {}, {}, {}, {}, {}, {}
  local head, facts = moment .. '\tpopped\t', '\t' .. name .. '\t' .. worker .. '\t'
  for i = 1, #jids do
    local jid, one, id, at = jids[i], all[i], store.next_id(), 2 * i
    waits[i] = store.text(since(now, one[4]))
    ids[i], said[i] = id, head .. jid .. facts .. waits[i]
    locks[at - 1], locks[at] = ends, keys.lease_member(id, jid)
    fields[at - 1], fields[at] = 'j' .. jid, id
    local text = plain_records.running(
      id, one[1], '0', name, one[3], worker, epochs.token_of(id), request, moment, ends, texts[i], one[5])
    written[at - 1], written[at] = job_keys[i], text
    shown[i] = {jid, 'running', text}
  end
  store.tell_all(ids, said)
  stats.waited_all(now, name, waits)
  fields[#fields + 1], fields[#fields + 2] = 'r' .. request, table.concat(jids, ' ')
  writes.put_off_many('ZADD', queue.locks_key, locks, #locks)
  writes.put_off_many('HSET', keys.worker(worker), fields, #fields)
  plain.answer = {'OK', shown}
  store.write_all_plain(written)
  store.end_plain(simulated)
end

-- Lease the first jobs of a queue to a worker.
function plain.pop(now, moment, args, simulated)
  local request, name, worker = args[2], args[3], args[4]
  local names, count = arguments.names, args[5] and count_of(args) or not args[5] and 1
  if not names[name] or not names[worker] or not count or not arguments.is_id(request, 64) then
    return nil
  end
  local quiet, state = store.open_plain(simulated, queues.state_key(name))
  local queue, expires = queues.begin(name, state), now + config.heartbeat(name)
  if quiet and shy > 0 and queue.work_key == shy_key then
    shy = shy - 1
    return nil
  elseif not quiet or not is_calm(now, queue, name, expires) or workers.granted(worker, request)[1] then
    return nil
  end
  local way = count == 1 and lease or lease_many
  way(now, moment, queue, worker, request, store.text(expires), simulated, count)
end

-- ---- complete

-- What `more` completions delete, of which the last is event `seq`: the members and the keys of complete jobs, and the
-- bounds of retention, if they change. Nil, if that is not plain.
local function retiring(now, more, seq, most)
  local members, sweep_seq, sweep_at = completed.beyond(now, more, seq, most)
  if not members or not members[1] then
    return members, nil, sweep_seq, sweep_at
  end
  local job_keys = {}
  for i = 1, #members do
    job_keys[i] = keys.job(keys.jid_of(members[i]))
  end
  local texts = store.read_all(job_keys)
  for i = 1, #members do
    if not plain_records.is_ended(texts[i]) then
      return nil
    end
  end
  return members, job_keys, sweep_seq, sweep_at
end

-- Delete complete jobs, and set the bounds of retention; give the last sequence as text.
local function retire(moment, id, members, job_keys, sweep_seq, sweep_at)
  if not sweep_seq then
    return id
  end
  store.bound('sweep_seq', sweep_seq)
  store.bound('sweep_at', sweep_at)
  if job_keys then
    budget.spend(#members)
    for i = 1, #members do
      local _
      _, id = store.tell(moment .. '\tretired\t' .. keys.jid_of(members[i]))
    end
    writes.put_off_many('ZREM', keys.completed, members, #members)
    writes.put_off_many('DEL', false, job_keys, #job_keys)
  end
  return id
end

-- Complete a job.
function plain.complete(now, moment, args, simulated)
  local jid, token, result = args[3], args[4], args[5] and args[6] or ''
  if args[5] and (args[5] ~= 'result' or not args[6] or args[7] or #result > SHORT) or not arguments.is_id(jid, 128) then
    return nil
  end
  local key = keys.job(jid)
  local quiet, text = store.open_plain(simulated, key)
  local seq, stages, more, name, tries, retries, worker, held, grant, popped_at, at = plain_records.read_running(text)
  if not quiet or not seq or held ~= token or config.owns(name) then
    return nil
  end
  local members, job_keys, sweep_seq, sweep_at = retiring(now, 1, store.seq + 1, RETIRED)
  if not members then
    return nil
  end

  local ran = store.text(since(now, popped_at))
  stats.ran_one(now, name, ran)
  local _, id =
    store.tell(moment .. '\tcompleted\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. token .. '\t' .. ran)
  text = plain_records.complete(id, stages, more, name, tries, retries, token, popped_at, moment, text, at, result)
  local last = retire(moment, id, members, job_keys, sweep_seq, sweep_at)
  plain.answer = {'OK', 'complete'}
  store.write_plain(key, text, last)
  writes.last('ZREM', queues.locks_key(name), keys.lease_member(seq, jid))
  writes.last('HDEL', keys.worker(worker), 'j' .. jid, 'r' .. grant)
  writes.last('ZADD', keys.completed, moment, keys.member(id, jid))
  store.end_plain(simulated)
end

-- The ids, tokens and results of the jobs of a batch, or nil if there are other arguments. A job is `jobs 2 jid token`, or
-- `jobs 4 jid token result text`. The keys of the jobs are added to a list.
local function leases(args, wanted)
  local jids, tokens, results_, met, count, at = {}, {}, {}, {}, 0, 3
  while args[at] do
    local size, jid, token, result = args[at + 1], args[at + 2], args[at + 3], ''
    if size == '4' and args[at + 4] == 'result' then
      at, result = at + 2, args[at + 5]
    elseif size ~= '2' then
      return nil
    end
    if not token or not result or #result > SHORT or met[jid] or not arguments.is_id(jid, 128) then
      return nil
    end
    count, at = count + 1, at + 4
    met[jid] = true
    jids[count], tokens[count], results_[count], wanted[count + 3] = jid, token, result, keys.job(jid)
    if args[at] and args[at] ~= 'jobs' then
      return nil
    end
  end
  return args[3] == 'jobs' and count <= catalogue.most and jids, tokens, results_
end

-- Take apart the records of jobs that one worker holds in one queue under these tokens; nil, if they are others.
local function held_together(found, tokens)
  local all, name, worker = {}, nil, nil
  for i = 1, #tokens do
    local one = {plain_records.read_running(found[i + 3])}
    name, worker = name or one[4], worker or one[7]
    if one[3] ~= '0' or one[8] ~= tokens[i] or one[4] ~= name or one[7] ~= worker then
      return nil
    end
    all[i] = one
  end
  return all, name, worker
end

-- Complete these jobs; give the outcomes, and the keys and texts of the records.
local function complete_all(now, moment, name, worker, jids, wanted, found, all, given)
  local locks, fields, runs, ended, outcomes, texts, ids, said, last = {}, {}, {}, {}, {}, {}, {}, {}, nil
  local head, facts = moment .. '\tcompleted\t', '\t' .. name .. '\t' .. worker .. '\t'
  for i = 1, #jids do
    local jid, one, id, at = jids[i], all[i], store.next_id(), 2 * i
    runs[i] = store.text(since(now, one[10]))
    locks[i], fields[#fields + 1] = keys.lease_member(one[1], jid), 'j' .. jid
    if one[9] ~= last then
      last = one[9]
      fields[#fields + 1] = 'r' .. last
    end
    ids[i], said[i] = id, head .. jid .. facts .. one[8] .. '\t' .. runs[i]
    ended[at - 1], ended[at] = moment, keys.member(id, jid)
    texts[at - 1], texts[at] = wanted[i + 3], plain_records.complete(
      id, one[2], '0', name, one[5], one[6], one[8], one[10], moment, found[i + 3], one[11], given[i])
    outcomes[i] = 'complete'
  end
  store.tell_all(ids, said)
  stats.ran_all(now, name, runs)
  writes.put_off_many('ZREM', queues.locks_key(name), locks, #locks)
  writes.put_off_many('HDEL', keys.worker(worker), fields, #fields)
  writes.put_off_many('ZADD', keys.completed, ended, #ended)
  return outcomes, texts
end

-- Complete jobs that one worker holds in one queue.
function plain.complete_many(now, moment, args, simulated)
  local wanted = {false, false, false}
  local jids, tokens, given = leases(args, wanted)
  if not jids then
    return nil
  end
  local quiet, found = store.open_all_plain(simulated, wanted)
  local all, name, worker = held_together(found, tokens)
  if not quiet or not all or config.owns(name) then
    return nil
  end
  local members, job_keys, sweep_seq, sweep_at =
    retiring(now, #jids, store.seq + #jids, math.floor((budget.UNITS - 2 * #jids) / 8))
  if not members then
    return nil
  end

  local outcomes, texts = complete_all(now, moment, name, worker, jids, wanted, found, all, given)
  retire(moment, '', members, job_keys, sweep_seq, sweep_at)
  plain.answer = {'OK', outcomes}
  store.write_all_plain(texts)
  store.end_plain(simulated)
end

-- The operations that have a plain case.
plain.ways = {put = plain.put, put_many = plain.put_many, pop = plain.pop, complete = plain.complete}
plain.ways.complete_many = plain.complete_many

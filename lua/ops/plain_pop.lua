-- Pop in the plain case (ops/plain.lua).

local plain_pop = {}

local SHY = 16 -- how many pops leave a queue to the verb after a job that was not plain

local shy_key, shy = false, 0 -- the order whose last job was not plain, and how many pops leave it to the verb

-- How many jobs a pop asks for at most, whose options stand between two places, and whether it waits for one; nil, if it
-- asks for anything else.
local function count_of(args, at, last)
  local count, waits = 1, false
  while at <= last do
    if args[at] == 'count' then
      count = arguments.whole(args[at + 1], 1, catalogue.most)
    elseif args[at] == 'wait' and (args[at + 1] == '1' or args[at + 1] == '0') then
      waits = args[at + 1] == '1'
    else
      return nil
    end
    at = at + 2
  end
  return at == last + 1 and count, waits
end

-- Leave a queue to the verb for a while, whose first job is not plain.
local function leave(queue, popped)
  shy_key, shy = queue.work_key, SHY
  queues.unmark(queue)
  writes.put_back(queue.work_key, popped)
end

-- When the lease of a job with these lengths ends, as text, if leases of the queue end at a moment; false, if it would be
-- the first to end.
local function end_of_lease(now, queue, expires, own, longest)
  local ends_ = own and now + own or expires
  ends_ = longest and math.min(ends_, now + longest) or ends_
  return queue.due <= ends_ and store.text(ends_)
end

local stages, more, tries, ready_at, at, held, of, turn, rare -- what the record says of the job that was taken
local ends, priority, others -- when its lease ends, its priority, and how many other jobs with a turn stay in the order
local is_used -- whether its throttle is in use already, if that is known

-- Take the job that was popped off a queue, whose leases end at a moment, and whose record may be known; give its id, its
-- key and its record, or nil if it is not plain.
function plain_pop.take(now, queue, popped, expires, text)
  local jid = keys.ready_jid_of(popped[1])
  local key = keys.job(jid)
  text = text or writes.fetch('GET', key)
  local own, longest
  stages, more, tries, ready_at, at, held, of, turn, rare, own, longest = plain_records.read_waiting(text)
  ends = stages and end_of_lease(now, queue, expires, own, longest)
  local opens = ends and true
  if ends and held == 'throttles' then
    opens, is_used = throttles.is_open_plain(of)
  end
  if not opens or turn and aging.is_by_age(popped[2]) then
    return leave(queue, popped)
  end
  if turn then
    priority = popped[2]
    others = turns.count(queue.name, priority) - 1
  end
  return jid, key, text
end

-- The units of the job that was taken, in an entry of the journal.
function plain_pop.units(text)
  return plain_journal.units(stages, more, text)
end

-- Lease the job that was taken to a worker; give its record, and the sequence of its lease as text.
function plain_pop.lease(now, moment, queue, worker, request, jid, text)
  local name, waited = queue.name, store.text(plain_records.since(now, ready_at))
  workers.seen(now, worker)
  stats.waited_one(now, name, waited, text, more)
  local id = store.tell(moment .. '\tpopped\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. waited)
  text, more = plain_records.running(
    id, stages, more, name, tries, worker, epochs.token_of(id), request, moment, ends, text, at, rare)
  return text, id
end

-- Enter the lease into the lists.
function plain_pop.enter(queue, worker, request, jid, id)
  writes.last('ZADD', queue.locks_key, ends, keys.lease_member_of(id, jid))
  workers.know_request(worker, request)
  writes.last('HSET', keys.worker(worker), 'j' .. jid, id, 'r' .. request, jid)
  if held == 'throttles' then
    writes.last('ZADD', keys.throttle(of, '-held'), id, jid)
    if not is_used then
      writes.last('ZADD', keys['throttles-used'], '0', of)
    end
  end
  if turn then
    turns.leave_plain(queue.name, priority, others)
  end
end

-- Give nothing to a worker, because no job is ready. If it waits, it counts as idle.
function plain_pop.wait(now, queue, worker, waits)
  workers.seen(now, worker)
  if waits then
    queues.await_work(queue.name)
  end
end

local function give_nothing(now, moment, args, queue, worker, request, waits, simulated)
  plain_pop.wait(now, queue, worker, waits)
  if store.config and plain_journal.is_on(simulated) then
    plain_journal.enter('pop', moment, request, args, 1, #args, store.seq_text(), plain_journal.jobs({}, {}), 0, 0)
  end
  plain.answer = ''
  store.write_all_plain({})
  store.end_plain(simulated)
end

-- Lease the job that was popped off a queue to a worker.
local function lease_one(now, moment, args, queue, worker, request, expires, simulated, popped, known)
  local jid, key, text = plain_pop.take(now, queue, popped, expires, known)
  if not jid then
    return nil
  end

  local id
  text, id = plain_pop.lease(now, moment, queue, worker, request, jid, text)
  if store.config and plain_journal.is_on(simulated) then
    local outcome = plain_journal.job(jid, text)
    plain_journal.enter('pop', moment, request, args, 1, #args, id, outcome, 0, plain_pop.units(text))
  end
  plain.answer = replies.job(jid, 'running', text)
  store.write_plain(key, text)
  plain_pop.enter(queue, worker, request, jid, id)
  store.end_plain(simulated)
end

-- What the record of one of several waiting jobs says, and, if it has options, when its lease ends; then the units for
-- moving it. Nil, if it is not plain, holds anything, or has a turn or tags.
local function read_one(now, queue, expires, text)
  local bare_stages, bare_tries, both, ready_at, retries, from = plain_records.bare_waiting(text or '')
  if bare_stages then
    return {bare_stages, '0', bare_tries, ready_at, from, false, plain_records.MOVING, both, retries}
  end
  local stages_, more_, tries_, ready, rest, holds, _, turn_, _, own, longest = plain_records.read_waiting(text)
  local units = holds == '' and not turn_ and plain_records.units(text, more_)
  local ends_ = units and end_of_lease(now, queue, expires, own, longest)
  return ends_ and {stages_, more_, tries_, ready, rest, ends_, units}
end

-- Take the jobs that were popped off a queue, whose leases end at a moment; give their ids, keys and records, and what these
-- say, or nil if there is none, or one is not plain.
local function take_many(now, queue, popped, expires)
  if not popped[1] then
    return nil
  end
  local jids, job_keys = {}, {}
  for i = 1, #popped, 2 do
    local jid, at = keys.ready_jid_of(popped[i]), (i + 1) / 2
    jids[at], job_keys[at] = jid, keys.job(jid)
  end
  local texts, all, units = store.read_all(job_keys), {}, 0
  for i = 1, #jids do
    local one = read_one(now, queue, expires, texts[i])
    units = one and units + one[7]
    if not units or units > budget.UNITS then
      return leave(queue, popped)
    end
    all[i] = one
  end
  budget.spend(units)
  return jids, job_keys, texts, all
end

-- The fields of leased jobs and of their grants in the hash of their worker.
local function fields_of(jids, ids, requests)
  local fields, size, each = {}, 0, type(requests) == 'table'
  for i = 1, #jids do
    fields[size + 1], fields[size + 2], size = 'j' .. jids[i], ids[i], size + 2
    if each then
      fields[size + 1], fields[size + 2], size = 'r' .. requests[i], jids[i], size + 2
    end
  end
  if not each then
    fields[size + 1], fields[size + 2] = 'r' .. requests, table.concat(jids, ' ')
  end
  return fields
end

-- The units of leased jobs without tags, in an entry of the journal; of each is given what its record said.
local function units_of(all)
  local units = 0
  for i = 1, #all do
    units = units + plain_journal.units(all[i][1], '0')
  end
  return units
end

-- The record of one of several leased jobs, which has options.
local function record_of(one, id, name, worker, request, moment, text)
  local token = epochs.token_of(id)
  return (plain_records.running(
    id, one[1], one[2], name, one[3], worker, token, request, moment, one[6], text, one[5]))
end

-- The record of one of several leased jobs, which has no options, of these parts; what it says is kept.
local function running_one(one, id, name, worker, request, moment, before, by, times, last, text)
  local token, rest = epochs.token_of(id), string.sub(text, one[5])
  local line = last .. token .. '\n'
  local record = plain_records.running_all(id, one[1], before, one[3], by, token, request, times, rest, line)
  plain_records.keep(
    record, {id, plain_records.NEXT[one[1]], name, one[8], worker, token, 'r' .. request, moment, rest, line, one[9]})
  return record
end

-- Lease jobs that were taken off a queue to a worker; give the keys and texts of their records, and the ids of the events.
-- The requests are a list, or one for all.
local function lease_all(now, moment, queue, worker, requests, expires, jids, job_keys, texts, all)
  workers.seen(now, worker)
  local ends = store.text(expires)
  local name, locks, waits, written, ids, said = queue.name, {}, {}, {}, store.next_ids(#jids), {}
  local head, facts = moment .. '\tpopped\t', '\t' .. name .. '\t' .. worker .. '\t'
  local each, request = type(requests) == 'table', requests
  local before, by, times, last = plain_records.running_parts(name, worker, moment, ends)
  local fields = fields_of(jids, ids, requests)
  for i = 1, #jids do
    local jid, one, id, at = jids[i], all[i], ids[i], 2 * i
    if each then
      request = requests[i]
    end
    waits[i] = store.text(plain_records.since(now, one[4]))
    said[i] = head .. jid .. facts .. waits[i]
    locks[at - 1], locks[at] = one[6] or ends, keys.lease_member_of(id, jid)
    written[at - 1], written[at] = job_keys[i], one[6] and record_of(one, id, name, worker, request, moment, texts[i])
      or running_one(one, id, name, worker, request, moment, before, by, times, last, texts[i])
  end
  store.tell_all(said)
  stats.waited_all(now, name, waits)
  writes.put_off_many('ZADD', queue.locks_key, locks, #locks)
  workers.forget_requests(worker)
  writes.put_off_many('HSET', keys.worker(worker), fields, #fields)
  return written, ids
end

-- Lease the jobs that were popped off a queue to a worker.
local function lease_many(now, moment, args, queue, worker, request, expires, simulated, popped)
  local jids, job_keys, texts, all = take_many(now, queue, popped, expires)
  if not jids then
    return nil
  end

  local written = lease_all(now, moment, queue, worker, request, expires, jids, job_keys, texts, all)
  if store.config and plain_journal.is_on(simulated) then
    local outcome = plain_journal.jobs(jids, written)
    plain_journal.enter('pop', moment, request, args, 1, #args, store.seq_text(), outcome, 0, units_of(all))
  end
  plain.answer = replies.leased(jids, written)
  store.write_all_plain(written)
  store.end_plain(simulated)
end

-- Whether pops from a queue are plain, whose state was read: it has nothing but leases and ready jobs, and a lease until
-- `expires` would not be the first to end.
function plain_pop.is_plain(now, queue, name, expires)
  if shy > 0 and queue.work_key == shy_key then
    shy = shy - 1
    queues.unmark(queue)
    return false
  end
  return queue.paused == '0' and queue.due > now and queue.due <= expires and not queue.admits_at
    and not (store.config and (config.owns(name) or queues.has_unaged(queue)))
end

-- Go on with a pop in a row (ops/bare.lua), after the first job was taken off its queue, if there is one, and
-- perhaps its record read.
function plain_pop.go_on(now, moment, args, queue, worker, request, expires, simulated, popped, text)
  store.begin_plain()
  queues.begin(queue.name, queue.text)
  writes.note_popped(queue.work_key, popped)
  workers.know_seen(worker)
  if not popped[1] then
    give_nothing(now, moment, args, queue, worker, request, args[6] == '1', simulated)
    return plain.answer
  end
  lease_one(now, moment, args, queue, worker, request, expires, simulated, popped, text)
  return plain.answer or nil
end

-- Read a queue for pops; give it, and when their leases end. Nil, if it is not plain.
local function open(now, name, simulated)
  local quiet, state = store.open_plain(simulated, queues.state_key(name))
  local queue, expires = queues.begin(name, state), now + config.heartbeat(name)
  if quiet and plain_pop.is_plain(now, queue, name, expires) then
    return queue, expires
  end
end

-- Lease the first jobs of a queue to a worker.
function plain_pop.pop(now, moment, args, simulated)
  local request, name, worker = args[2], args[3], args[4]
  local names, count, waits = arguments.names, 1, false
  if args[5] then
    count, waits = count_of(args, 5, #args)
  end
  if not names[name] or not names[worker] or not count or not arguments.is_id(request, 64) then
    return nil
  end
  local queue, expires = open(now, name, simulated)
  if not queue or not workers.is_new(worker, request) then
    return nil
  end
  local popped = writes.pop_first(queue.work_key, count > 1 and store.text(count))
  if not popped[1] then
    return give_nothing(now, moment, args, queue, worker, request, waits, simulated)
  end
  local way = count == 1 and lease_one or lease_many
  way(now, moment, args, queue, worker, request, expires, simulated, popped)
end

-- The requests of pops of one job from a queue by a worker, of which each begins at a place among the arguments, up to the
-- first that is not plain.
local function asked(args, places, sizes, name, worker)
  local requests, met = {}, {}
  for i = 1, #places do
    local at, size = places[i], sizes[i]
    local request = args[at + 1]
    if size < 4 or args[at + 2] ~= name or args[at + 3] ~= worker or met[request] or not arguments.is_id(request, 64)
      or size > 4 and count_of(args, at + 4, at + size - 1) ~= 1 then
      break
    end
    met[request] = true
    requests[i] = request
  end
  return requests
end

-- Record one pop of several that share a call.
local function record_one(moment, request, args, at, size, id, jid, text, one)
  local outcome, units = plain_journal.job(jid, text), plain_journal.units(one[1], '0')
  plain_journal.enter('pop', moment, request, args, at, size, plain_journal.seq_of(id), outcome, 0, units)
end

-- Lease the first jobs of a queue to a worker, each by an operation of its own; give how many.
function plain_pop.group(now, moment, args, places, sizes, simulated)
  local name, worker, names = args[places[1] + 2], args[places[1] + 3], arguments.names
  if sizes[1] < 4 or not names[name] or not names[worker] then
    return 0
  end
  local requests = asked(args, places, sizes, name, worker)
  if not requests[2] then
    return 0
  end
  local queue, expires = open(now, name, simulated)
  local count = queue and workers.new_requests(worker, requests) or 0
  if count < 2 then
    return 0
  end
  local popped = writes.pop_first(queue.work_key, store.text(count))
  local jids, job_keys, texts, all = take_many(now, queue, popped, expires)
  if not jids then
    return 0
  end

  local written, ids = lease_all(now, moment, queue, worker, requests, expires, jids, job_keys, texts, all)
  local shown, journals = {}, plain_journal.is_on(simulated)
  for i = 1, #jids do
    shown[i] = replies.job(jids[i], 'running', written[2 * i])
    if journals then
      record_one(moment, requests[i], args, places[i], sizes[i], ids[i], jids[i], written[2 * i], all[i])
    end
  end
  return plain.answer_all(shown, written, simulated)
end

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

-- Whether the job that was taken holds a place at this throttle.
function plain_pop.takes_place(throttle)
  return held == 'throttles' and of == throttle
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

-- The fields of leased jobs in the hash of their worker, and behind them those of their grants.
local function fields_of(jids, ids, requests)
  local size = 2 * #jids
  local fields = store.list(type(requests) == 'table' and 2 * size or size + 2)
  for i = 1, #jids do
    fields[2 * i - 1] = 'j' .. jids[i]
    fields[2 * i] = ids[i]
  end
  if type(requests) ~= 'table' then
    fields[size + 1], fields[size + 2] = 'r' .. requests, table.concat(jids, ' ')
    return fields
  end
  for i = 1, #jids do
    fields[size + 1], fields[size + 2], size = 'r' .. requests[i], jids[i], size + 2
  end
  return fields
end

-- The units of leased jobs without tags in an entry of the journal, by their stages.
local function units_of(stages_of)
  local units = 0
  for i = 1, #stages_of do
    units = units + plain_journal.units(stages_of[i], '0')
  end
  return units
end

-- The record of one of several jobs, which is not bare, after it was leased; when it was ready, its stages, when the lease
-- ends, and the units for moving it. Nil, if it is not plain, holds anything, or has a turn or tags.
local function with_options(now, moment, queue, worker, request, expires, text, id)
  local stages_, more_, tries_, ready, from, holds, _, turn_, _, own, longest = plain_records.read_waiting(text)
  local units = holds == '' and not turn_ and plain_records.units(text, more_)
  local ends_ = units and end_of_lease(now, queue, expires, own, longest)
  if ends_ then
    local record = plain_records.running(id, stages_, more_, queue.name, tries_, worker, epochs.token_of(id), request,
      moment, ends_, text, from)
    return record, ready, stages_, ends_, units
  end
end

-- Lease the jobs among several that are not bare; give the units for moving them beyond those of bare ones, which are too many
-- if one is not plain.
local function lease_others(now, moment, queue, worker, requests, expires, texts, ids, written, ready, stages_of, locks)
  local units, request = 0, requests
  for i = 1, #ids do
    if not written[2 * i] then
      if type(requests) == 'table' then
        request = requests[i]
      end
      local more_
      written[2 * i], ready[i], stages_of[i], locks[2 * i - 1], more_ =
        with_options(now, moment, queue, worker, request, expires, texts[i], ids[i])
      if not more_ then
        return budget.UNITS
      end
      units = units + more_ - plain_records.MOVING
    end
  end
  return units
end

-- The events of leased jobs, in three parts each, and how long each job has waited.
local function events_of(now, moment, name, worker, jids, ready)
  local events, waits, size, head = store.list(3 * #jids), store.list(#jids), 0, '\n' .. moment .. '\tpopped\t'
  local at, waited, tail
  for i = 1, #jids do
    if ready[i] ~= at then
      at = ready[i]
      waited = store.text(plain_records.since(now, at))
      tail = '\t' .. name .. '\t' .. worker .. '\t' .. waited
    end
    waits[i] = waited
    events[size + 1] = head
    events[size + 2] = jids[i]
    events[size + 3] = tail
    size = size + 3
  end
  return events, waits
end

-- Lease the jobs that were popped off a queue, whose leases end at a moment, to a worker; give their ids, the keys and texts
-- of their records, the ids of the events, and the stages of each. Nil, if there is none, or one is not plain. The
-- requests are a list, or one for all. Each list is made in a loop of its own: a call for each job would cost more.
local function lease_all(now, moment, queue, worker, requests, expires, popped)
  if not popped[1] then
    return nil
  end
  local jids, job_keys = keys.ready_jobs_of(popped)
  local texts, count, name, ends = store.read_all(job_keys), #jids, queue.name, store.text(expires)
  local ids = store.next_ids(count)
  local locks, fields = keys.leases_of(ids, jids, ends), fields_of(jids, ids, requests)
  local written, ready, stages_of, others = plain_records.lease_all(
    texts, job_keys, ids, name, worker, requests, moment, ends, locks, fields)
  local units = plain_records.MOVING * count
  if others then
    units = units + lease_others(
      now, moment, queue, worker, requests, expires, texts, ids, written, ready, stages_of, locks)
  end
  if units > budget.UNITS then
    return leave(queue, popped)
  end

  budget.spend(units)
  workers.seen(now, worker)
  local events, waits = events_of(now, moment, name, worker, jids, ready)
  store.tell_all(events, 3, count)
  stats.waited_all(now, name, waits)
  writes.put_off_many('ZADD', queue.locks_key, locks, 2 * count)
  workers.forget_requests(worker)
  writes.put_off_many('HSET', keys.worker(worker), fields, #fields)
  return jids, written, ids, stages_of
end

-- Lease the jobs that were popped off a queue to a worker.
local function lease_many(now, moment, args, queue, worker, request, expires, simulated, popped)
  local jids, written, _, stages_of = lease_all(now, moment, queue, worker, request, expires, popped)
  if not jids then
    return nil
  end

  if store.config and plain_journal.is_on(simulated) then
    local outcome = plain_journal.jobs(jids, written)
    plain_journal.enter('pop', moment, request, args, 1, #args, store.seq_text(), outcome, 0, units_of(stages_of))
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
local function record_one(moment, request, args, at, size, id, jid, text, stages_)
  local outcome, units = plain_journal.job(jid, text), plain_journal.units(stages_, '0')
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
  local jids, written, ids, stages_of = lease_all(now, moment, queue, worker, requests, expires, popped)
  if not jids then
    return 0
  end

  local shown, journals = {}, plain_journal.is_on(simulated)
  for i = 1, #jids do
    shown[i] = replies.job(jids[i], 'running', written[2 * i])
    if journals then
      record_one(moment, requests[i], args, places[i], sizes[i], ids[i], jids[i], written[2 * i], stages_of[i])
    end
  end
  return plain.answer_all(shown, written, simulated)
end

-- Complete in the plain case (ops/plain.lua).

local plain_complete = {}

local SHORT = 999 -- the most bytes of a result
local DONE = #'complete'
local LINE = #'popped\t\t\t\n' - 1 -- the bytes of the stage of a lease without its moment, worker and token, less one
local A, S = 97, 115 -- the last letters of reserved ids (arguments.has_own_key)
local RETIRED = 100 -- the most jobs that one completion deletes

local gone, members = {}, {} -- the ids of the jobs that a completion deletes, and their members in the list of complete jobs

-- Whether what `more` completions delete is plain, of which the last is event `seq`: up to so many jobs, of up to so many
-- units. Give the keys of the jobs, and the bounds of retention, if they change.
local function retiring(now, more, seq, most, units)
  local oldest, sweep_seq, sweep_at = completed.beyond(now, more, seq, most)
  if not oldest or not sweep_seq or not oldest[1] then
    return oldest, nil, sweep_seq, sweep_at
  end
  local job_keys = {}
  gone, members = {}, oldest
  for i = 1, #oldest do
    local jid = keys.jid_of(oldest[i])
    gone[i], job_keys[i] = jid, keys.job(jid)
  end
  local texts = store.read_all(job_keys)
  for i = 1, #texts do
    units = units - (plain_records.units_of_ended(texts[i]) or units + 1)
  end
  return units >= 0, job_keys, sweep_seq, sweep_at
end

-- Delete complete jobs, and set the bounds of retention.
local function retire(moment, job_keys, sweep_seq, sweep_at)
  store.bound('sweep_seq', sweep_seq)
  store.bound('sweep_at', sweep_at)
  if job_keys then
    budget.spend(#job_keys)
    store.tell_each(moment .. '\tretired\t', gone)
    writes.put_off_many('ZREM', keys.completed, members, #members)
    writes.put_off_many('DEL', false, job_keys, #job_keys)
  end
end

local rests -- whether its throttle is not in use any more after the completion
local request_key, request_text -- the request of the completed job, and its text after the completion

-- Whether a completed job lets go of what it holds by its option, a deduplication key, a place at a throttle or the slot
-- of a sub-request; nil, if there is more to do.
local function lets_go(option, of, jid)
  if option == 'request' then
    request_key, request_text = requests.done_plain(of)
    return request_key and true
  elseif option == 'throttles' then
    rests = throttles.rests_plain(of)
    return writes.fetch('ZCARD', keys.throttle(of, '-queues')) == 0 or nil
  end
  local unique = option == 'unique' and uniques.load(of)
  if not unique or unique.jid ~= jid and unique.next ~= jid then
    return false
  elseif unique.next ~= '' or unique.ends > 0 or unique.mode == 'window' then
    return nil
  end
  return true
end

-- The job that is completed: what its record says, what it lets go of, and what its completion deletes.
local seq, stages, more, name, tries, retries, worker, held, grant, popped_at, at, option, of
local lets, retires, job_keys, sweep_seq, sweep_at

-- Whether the completion of a job is plain, whose record was read.
local function is_plain(now, jid, token, text)
  seq, stages, more, name, tries, retries, worker, held, grant, popped_at, at, option, of = plain_records.read_running(text)
  if not seq or held ~= token or store.config and config.owns(name) then
    return false
  end
  retires, job_keys, sweep_seq, sweep_at = true, nil, nil, nil
  if not completed.is_known_early(now, store.seq + 1) then
    retires, job_keys, sweep_seq, sweep_at = retiring(now, 1, store.seq + 1, RETIRED, budget.UNITS / 2)
  end
  lets = false
  if option ~= '' then
    lets = lets_go(option, of, jid)
  end
  return retires and lets ~= nil
end

-- Complete the job; give its record, and its sequence as text.
local function complete_one(now, moment, jid, text, result)
  local ran = store.text(plain_records.since(now, popped_at))
  stats.ran_one(now, name, ran, text, more)
  local id = store.tell(
    moment .. '\tcompleted\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. held .. '\t' .. ran)
  if option == 'request' then
    store.save(request_key, request_text)
    text, more = string.sub(text, 1, -1 - more), '0'
  end
  text = plain_records.complete(id, stages, more, name, tries, retries, held, popped_at, moment, text, at, result)
  if sweep_seq then
    retire(moment, job_keys, sweep_seq, sweep_at)
  end
  return text, id
end

-- Take the completed job off the leases, and list it; let go of what it held by an option, if it has one.
local function let_go(moment, id, jid)
  writes.last('ZREM', queues.locks_key(name), keys.lease_member_of(seq, jid))
  writes.last('HDEL', keys.worker(worker), 'j' .. jid, 'r' .. grant)
  writes.last('ZADD', keys.completed, moment, keys.member_of(id, jid))
  if lets and option == 'unique' then
    writes.last('HDEL', keys.uniques, of)
  elseif lets and option == 'throttles' then
    writes.last('ZREM', keys.throttle(of, '-held'), jid)
    if rests then
      writes.last('ZREM', keys['throttles-used'], of)
    end
  elseif lets then
    requests.finish_plain(of, jid, id)
  end
end

-- The result that a completion gives in its pairs from a place on, or '', and whether it waits for a job; nil, if it says
-- anything that is not plain. A completion that pops may wait, and pops one job.
local function result_of(args, at, pops)
  local result, waits = '', false
  while args[at] do
    local name, value = args[at], args[at + 1]
    if name == 'result' then
      result = value
    elseif not pops or (name ~= 'wait' or value ~= '1' and value ~= '0') and (name ~= 'count' or value ~= '1') then
      return nil
    elseif name == 'wait' then
      waits = value == '1'
    end
    at = at + 2
  end
  return result and #result <= SHORT and result or nil, waits
end

-- Complete a job whose record was read, if it is plain.
local function complete_read(now, moment, args, key, text, result, simulated)
  local jid, id = args[3], nil
  if not is_plain(now, jid, args[4], text) then
    return nil
  end

  text, id = complete_one(now, moment, jid, text, result)
  if store.config and plain_journal.is_on(simulated) then
    plain_journal.enter('complete', moment, '', args, 1, #args, store.seq_text(), plain_journal.COMPLETE, 0, 0)
  end
  plain.answer = 'complete'
  store.write_plain(key, text)
  let_go(moment, id, jid)
  store.end_plain(simulated)
end

-- Complete a job.
function plain_complete.complete(now, moment, args, simulated)
  local jid, result = args[3], result_of(args, 5, false)
  if not result or not arguments.has_own_key(jid) then
    return nil
  end
  local key = keys.job(jid)
  local quiet, text = store.open_plain(simulated, key)
  if quiet then
    complete_read(now, moment, args, key, text, result, simulated)
  end
end

-- Go on with a completion in a row (ops/bare.lua), after the record was read.
function plain_complete.go_on(now, moment, args, key, text, simulated)
  store.begin_plain()
  complete_read(now, moment, args, key, text, '', simulated)
  return plain.answer or nil
end

-- Whether the names of a completion that pops are known, and it has a request.
local function is_known(request, jid, wanted, taker)
  local names = arguments.names
  return taker and names[wanted] and names[taker] and arguments.is_id(jid, 128) and arguments.is_id(request, 64)
end

-- Record a completion that pops, and the job that it leased, if there is one.
local function record_both(moment, args, next_jid, next_text)
  local outcome, units = plain_journal.COMPLETE_AND_NOTHING, 0
  if next_jid then
    outcome, units = plain_journal.complete_and_job(next_jid, next_text), plain_pop.units(next_text)
  end
  plain_journal.enter('complete_and_pop', moment, args[2], args, 1, #args, store.seq_text(), outcome, DONE, units)
end

-- Complete a job, and lease to its worker the job that was taken off a queue. Give it nothing, if there is none.
local function complete_both(now, moment, args, queue, key, text, result, waits, simulated, next_jid, next_key, next_text)
  local request, jid, taker, given, id, last = args[2], args[3], args[6], '', nil, nil
  text, id = complete_one(now, moment, jid, text, result)
  if next_jid then
    next_text, last = plain_pop.lease(now, moment, queue, taker, request, next_jid, next_text)
    store.save(next_key, next_text)
    given = replies.job(next_jid, 'running', next_text)
  else
    plain_pop.wait(now, queue, taker, waits)
  end
  if store.config and plain_journal.is_on(simulated) then
    record_both(moment, args, next_jid, next_text)
  end
  plain.answer = 'complete\n' .. given
  store.write_plain(key, text)
  rests = rests and not (next_jid and plain_pop.takes_place(of))
  let_go(moment, id, jid)
  if next_jid then
    plain_pop.enter(queue, taker, request, next_jid, last)
  end
  store.end_plain(simulated)
end

-- Complete a job, and lease to its worker what was taken off a queue, which may be nothing.
local function fetch_next(now, moment, args, queue, expires, key, text, result, waits, simulated, popped, known)
  if not popped[1] then
    return complete_both(now, moment, args, queue, key, text, result, waits, simulated)
  end
  local next_jid, next_key, next_text = plain_pop.take(now, queue, popped, expires, known)
  if next_jid then
    complete_both(now, moment, args, queue, key, text, result, false, simulated, next_jid, next_key, next_text)
  end
end

-- Go on with such an operation in a row (ops/bare.lua), which has found that the completion is plain, after the first job was
-- taken off the queue, if there is one, and perhaps its record read.
function plain_complete.go_on_both(now, moment, args, queue, expires, key, text, simulated, popped, known)
  store.begin_plain()
  queues.begin(queue.name, queue.text)
  writes.note_popped(queue.work_key, popped)
  workers.know_seen(args[6])
  is_plain(now, args[3], args[4], text)
  fetch_next(now, moment, args, queue, expires, key, text, '', args[8] == '1', simulated, popped, known)
  return plain.answer or nil
end

-- Whether the list of workers may lose the worker itself, which the verb sweeps when its lease has ended.
local function may_unlist_itself()
  return store.config and config.value('max-worker-age') == 0
end

-- Complete a job, and lease the first job of a queue to its worker.
function plain_complete.complete_and_pop(now, moment, args, simulated)
  local request, jid, wanted, taker, result, waits = args[2], args[3], args[5], args[6], result_of(args, 7, true)
  if not result or not is_known(request, jid, wanted, taker) then
    return nil
  end
  local key = keys.job(jid)
  local quiet, text, state = store.open_plain(simulated, key, queues.state_key(wanted))
  local queue, expires = queues.begin(wanted, state), now + config.heartbeat(wanted)
  if not quiet or not plain_pop.is_plain(now, queue, wanted, expires) or not is_plain(now, jid, args[4], text)
    or worker ~= taker or not workers.is_new(taker, request) or may_unlist_itself() then
    return nil
  end
  fetch_next(
    now, moment, args, queue, expires, key, text, result, waits, simulated, writes.pop_first(queue.work_key))
end

-- The ids and tokens of the jobs of a batch, and the results by their numbers, or nil if there are other arguments. A job is
-- `jobs 2 jid token`, or `jobs 4 jid token result text`. The keys of the jobs are added to a list.
local function leases(args, wanted)
  local jids, tokens, given, met, count, at, before = {}, {}, {}, {}, 0, 3, keys.job('')
  while args[at] == 'jobs' do
    local size, jid, token = args[at + 1], args[at + 2], args[at + 3]
    local last = token and string.byte(jid, -1)
    if not last or met[jid] or (last == A or last == S) and not arguments.has_own_key(jid) then
      return nil
    end
    count = count + 1
    met[jid], jids[count], tokens[count] = true, jid, token
    wanted[count + 3] = before .. jid
    at = at + 4
    if size ~= '2' then
      local result = size == '4' and args[at] == 'result' and args[at + 1]
      if not result or #result > SHORT then
        return nil
      end
      given[count], at = result ~= '' and result or nil, at + 2
    end
  end
  return count > 0 and not args[at] and count <= catalogue.most and jids, tokens, given
end

-- What the record of a leased job with options says, as plain_records.leased but for the rest, and behind that the length of
-- its rare part and where the rest begins; and the units for moving it. Nil, if it holds anything or has tags.
local function with_options(text, jid)
  local lease, stages_, more_, name_, tries_, retries_, worker_, token, grant_, popped_at_, at_, held_ = plain_records.read_running(text)
  local units = held_ == '' and plain_records.units(text, more_)
  if units then
    return {keys.lease_member_of(lease, jid), stages_, name_, tries_, worker_, token, 'r' .. grant_, popped_at_, false,
      retries_, 'j' .. jid, false, more_, at_}, units
  end
  return nil, nil
end

-- What the record of a leased job says that is not kept, and the units for moving it; nil, if it is none, or holds anything
-- or has tags.
local function read_one(text, jid)
  local one = text and plain_records.read_leased(text, jid)
  if one then
    return one, plain_records.MOVING
  end
  return with_options(text, jid)
end

-- Take apart the records of jobs that one worker holds in one queue under these tokens, up to the first that is none, or
-- holds anything or has tags; give their queue, their worker, and the units for moving them.
local function held_together(found, wanted, jids, tokens)
  local all, name, worker, moving = {}, nil, nil, plain_records.MOVING
  local sum, kept = 0, plain_records.kept()
  for i = 1, #jids do
    local text, units = found[i + 3], moving
    local one = kept[text]
    if not one or one[12] ~= wanted[i + 3] then
      one, units = read_one(text, jids[i])
    end
    if i == 1 and one then
      name, worker = one[3], one[5]
    end
    if not one or one[6] ~= tokens[i] or one[3] ~= name or one[5] ~= worker then
      break
    end
    all[i] = one
    sum = sum + units
  end
  return all, name, worker, sum
end

-- The record of one of several jobs that are completed, which has options or gets a result.
local function complete_one_of(id, one, moment, text, result)
  local more_, at_ = one[13], one[14]
  if not more_ then
    more_, at_ = '0', #text - #one[9] - LINE - #one[8] - #one[5] - #one[6]
  end
  return plain_records.complete(
    id, one[2], more_, one[3], one[4], one[10], one[6], one[8], moment, text, at_, result)
end

-- Of completed jobs the outcomes, the members of their leases, their fields in the hash of their worker and the number of
-- these, how long they ran, and their events, in five parts each.
local function lists_of(now, moment, jids, all, count)
  local outcomes, locks, runs, events = store.list(count), store.list(count), store.list(count), store.list(5 * count)
  local fields, size, at, last = store.list(count + 1), 0, 0, nil
  local head, facts = '\n' .. moment .. '\tcompleted\t', '\t' .. all[1][3] .. '\t' .. all[1][5] .. '\t'
  local minute, popped_at, ran, tail = stats.behind(now), nil, nil, nil
  for i = 1, count do
    local one = all[i]
    if one[8] ~= popped_at then
      popped_at = one[8]
      ran = store.text(plain_records.since(now, popped_at))
      ran, tail = ran .. minute, '\t' .. ran
    end
    outcomes[i], locks[i], runs[i] = 'complete', one[1], ran
    size = size + 1
    fields[size] = one[11]
    if one[7] ~= last then
      last, size = one[7], size + 1
      fields[size] = last
    end
    events[at + 1] = head
    events[at + 2] = jids[i]
    events[at + 3] = facts
    events[at + 4] = one[6]
    events[at + 5] = tail
    at = at + 5
  end
  return outcomes, locks, fields, size, runs, events
end

-- Complete the first `count` jobs; give the outcomes, the keys and texts of the records, and the ids of the events.
local function complete_all(now, moment, name, worker, count, jids, wanted, found, all, given)
  local ids = store.next_ids(count)
  local outcomes, locks, fields, size, runs, events = lists_of(now, moment, jids, all, count)
  local texts, others = plain_records.complete_all(found, wanted, all, ids, moment, given)
  for i = 1, others and count or 0 do
    texts[2 * i] = texts[2 * i] or complete_one_of(ids[i], all[i], moment, found[i + 3], given[i] or '')
  end
  store.tell_all(events, 5, count)
  stats.ran_all(now, name, runs)
  writes.put_off_many('ZREM', queues.locks_key(name), locks, count)
  writes.put_off_many('HDEL', keys.worker(worker), fields, size)
  writes.put_off_many('ZADD', keys.completed, keys.members_of(ids, jids, moment), 2 * count)
  return outcomes, texts, ids
end

-- Complete jobs that one worker holds in one queue.
function plain_complete.complete_many(now, moment, args, simulated)
  local wanted = {false, false, false}
  local jids, tokens, given = leases(args, wanted)
  if not jids then
    return nil
  end
  local quiet, found = store.open_all_plain(simulated, wanted)
  local all, name, worker, moved = held_together(found, wanted, jids, tokens)
  local units = (budget.UNITS - moved) / 2
  if not quiet or #all < #jids or units < 0 or config.owns(name) then
    return nil
  end
  local retires, job_keys, sweep_seq, sweep_at = retiring(now, #jids, store.seq + #jids, math.floor(units / 4), units)
  if not retires then
    return nil
  end

  local outcomes, texts = complete_all(now, moment, name, worker, #jids, jids, wanted, found, all, given)
  if sweep_seq then
    retire(moment, job_keys, sweep_seq, sweep_at)
  end
  if store.config and plain_journal.is_on(simulated) then
    local outcome, bytes = plain_journal.texts(outcomes)
    plain_journal.enter('complete_many', moment, '', args, 1, #args, store.seq_text(), outcome, bytes, 0)
  end
  plain.answer = {'OK', outcomes}
  store.write_all_plain(texts)
  store.end_plain(simulated)
end

-- The ids, tokens and results of completions, of which each begins at a place among the arguments, up to the first that is
-- not plain. The keys of the jobs are added to a list.
local function asked(args, places, sizes, wanted)
  local jids, tokens, given, met = {}, {}, {}, {}
  for i = 1, #places do
    local at, size = places[i], sizes[i]
    local jid, result = args[at + 2], size == 6 and args[at + 4] == 'result' and args[at + 5] or size == 4 and ''
    if not result or #result > SHORT or met[jid] or not arguments.has_own_key(jid) then
      break
    end
    met[jid] = true
    jids[i], tokens[i], given[i], wanted[i + 3] = jid, args[at + 3], result ~= '' and result or nil, keys.job(jid)
  end
  return jids, tokens, given
end

-- Complete jobs that one worker holds in one queue, each by an operation of its own, as far as none of them deletes others;
-- give how many.
function plain_complete.group(now, moment, args, places, sizes, simulated)
  local wanted = {false, false, false}
  local jids, tokens, given = asked(args, places, sizes, wanted)
  if not jids[2] then
    return 0
  end
  local quiet, found = store.open_all_plain(simulated, wanted)
  local all, name, worker = held_together(found, wanted, jids, tokens)
  local count = quiet and all[2] and not config.owns(name) and math.min(#all, completed.room(now)) or 0
  if count < 2 then
    return 0
  end

  local outcomes, texts, ids = complete_all(now, moment, name, worker, count, jids, wanted, found, all, given)
  for i = 1, plain_journal.is_on(simulated) and count or 0 do
    plain_journal.enter(
      'complete', moment, '', args, places[i], sizes[i], plain_journal.seq_of(ids[i]), plain_journal.COMPLETE, 0, 0)
  end
  return plain.answer_all(outcomes, texts, simulated)
end

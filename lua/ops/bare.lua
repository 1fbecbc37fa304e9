-- Put, pop, complete, and complete and pop, of jobs without options, in a row of plain operations.
--
-- These are by far the most calls, and in a row (state/store.lua) all that they depend on is known but the job: the counters
-- and the options are those that the last operation has left, the state of the queue is decoded, and the requests of the
-- worker are known. So each function here compares what it reads with what is known, and calls the commands of the step. It
-- gives the reply as it is written for the wire, or nothing where anything is otherwise: then it has changed nothing, and
-- ops/plain.lua or the verb does the operation. tests/property/test_plain.py compares the keys.
--
-- A step is whole or not at all here too (state/writes.lua), but nothing is noted on the way: only if a command fails is
-- it told what was done. What the last writes reply is compared with what they reply if all goes well, because that costs
-- less than to look for an error. Each stage is one function, because a call of a function costs as much as five lines.

local bare = {}

local INLINE = 1024 -- the most bytes of data within a record
local PENDING = 127 -- as many durations are not folded before the next one
local TRIM = store.TRIM
local SEEN_MS = 1000 -- for so long it is not written again that a worker was seen

-- Put a new job.
function bare.put(args, simulated)
  local request, name, jid, klass, data = args[2], args[3], args[4], args[5], args[6]
  local queue = queues.known[name]
  if not queue or queue.put_row ~= store.row or not (simulated and store.calm or store.own) or not data or args[7]
    or #data > INLINE or not arguments.names[klass] or not arguments.is_id(jid, 128)
    or request ~= '' and not arguments.is_id(request, 64) then
    return nil
  end
  local _, moment = register.moment('put', args[1])
  local key = keys.job(jid)
  local found = redis.call('MGET', keys.counters, keys.config, key, queue.state_key)
  if found[1] ~= store.known_counters or found[2] ~= store.config or found[3] or found[4] ~= queue.text then
    return nil
  end

  local seq = store.seq + 1
  local id = store.id_of(seq)
  local counters, event, member = id .. store.tail, id .. store.suffix, keys.ready_member_of(moment, id, jid)
  local said = moment .. '\tput\t' .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting'
  redis.call('MSET', key, plain_records.waiting_bare(id, name, moment, klass, request, data), keys.counters, counters)
  local one = seq % TRIM > 0 and redis.pcall('XADD', keys.events, event, 'e', said) or store.append_trimming(seq, event, said)
  local two = redis.pcall('ZADD', queue.work_key, '0', member)
  if one ~= event or two ~= 1 then
    writes.check_late(jid, seq, {said}, {one, two}, {{'ZADD', queue.work_key, '0', member}})
  end
  store.seq, store.known_seq, store.known_counters = seq, seq, counters
  if store.own then
    store.own[store.epoch] = seq
  end
  return jid
end

-- Whether nothing of a queue is due, a lease until `expires` would not be the first to end, and one more
-- duration is appended to those of today without anything that follows.
local function is_open(now, queue, expires)
  return queue.due > now and queue.due <= expires and queue.pending_waits < PENDING and now < queue.day_end
    and now >= queue.day
end

-- Whether a request of a worker was granted nothing yet, and the worker was seen lately.
local function is_known(now, taker, grant)
  return taker.room > 0 and taker.seen_at <= now and now < taker.seen_at + SEEN_MS and not taker.granted[grant]
end

-- Whether an operation says nothing from a place on but that it waits, which matters only if there is no job.
local function only_waits(args, at)
  return args[at] == 'wait' and (args[at + 1] == '1' or args[at + 1] == '0') and not args[at + 2]
end

-- Take the first job off a queue; give what was taken, and of the job its id, its key, its record, and what that says
-- (plain_records.bare_waiting), which is nothing if it is not bare.
local function take(queue)
  local work_key = queue.work_key
  local popped = redis.pcall('ZPOPMIN', work_key)
  local member = popped[1]
  if not member then
    return popped.err and writes.stop_early(work_key, popped) or popped
  end
  local jid = keys.ready_jid_of(member)
  local key = keys.job(jid)
  local text = redis.pcall('GET', key)
  if not text or text.err then
    return text and writes.stop_early(key, text, work_key, popped) or popped
  end
  return popped, jid, key, text, plain_records.bare_waiting(text)
end

-- Lease the first job of a queue to a worker.
function bare.pop(args, simulated)
  local request, name, worker = args[2], args[3], args[4]
  local queue, taker = queues.known[name], workers.known[worker]
  if not queue or queue.pop_row ~= store.row or not taker or taker.row ~= store.row
    or not (simulated and store.calm or store.own) or args[5] and not only_waits(args, 5)
    or not arguments.is_id(request, 64) then
    return nil
  end
  local now, moment = register.moment('pop', args[1])
  local expires, grant = now + queue.lease_ms, 'r' .. request
  if not is_open(now, queue, expires) or not is_known(now, taker, grant) then
    return nil
  end
  local found = store.config and redis.call('MGET', keys.counters, keys.config, queue.state_key, keys.guard)
    or redis.call('MGET', keys.counters, keys.config, queue.state_key)
  if found[1] ~= store.known_counters or found[2] ~= store.config or found[3] ~= queue.text then
    return nil
  end
  local popped, jid, key, text, stages, tries, both, ready_at, retries, at = take(queue)
  if not stages then
    return plain_pop.go_on(now, moment, args, queue, worker, request, expires, simulated, popped, text)
  end

  local seq, waited, ends, rest = store.seq + 1, now - ready_at, store.text(expires), string.sub(text, at)
  local id = store.id_of(seq)
  waited = store.text(waited > 0 and waited or 0)
  local counters, event, token = id .. store.tail, id .. store.suffix, epochs.token_of(id)
  local said = moment .. '\tpopped\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. waited
  local record = plain_records.running_bare(id, stages, name, tries, worker, token, request, moment, ends, rest)
  local lease, field, waits = keys.lease_member_of(id, jid), 'j' .. jid, queue.pending_waits + 1
  local done = redis.pcall('MSET', key, record, keys.counters, counters)
  if done.err then
    writes.stop_early(keys.counters, done, queue.work_key, popped)
  end
  local one = seq % TRIM > 0 and redis.pcall('XADD', keys.events, event, 'e', said) or store.append_trimming(seq, event, said)
  local two = redis.pcall('RPUSH', queue.waits_key, waited)
  local three = redis.pcall('ZADD', queue.locks_key, ends, lease)
  local four = redis.pcall('HSET', taker.key, field, id, grant, jid)
  if one ~= event or two ~= waits or three ~= 1 or four ~= 2 then
    writes.check_late(replies.job(jid, 'running', record), seq, {said}, {one, two, three, four}, {
      {'RPUSH', queue.waits_key, waited}, {'ZADD', queue.locks_key, ends, lease},
      {'HSET', taker.key, field, id, grant, jid},
    })
  end
  queue.pending_waits, taker.granted[grant], taker.room = waits, true, taker.room - 1
  plain_records.keep(
    record, {lease, plain_records.NEXT[stages], name, both, worker, token, grant, moment, rest, retries, field, key})
  store.seq, store.known_seq, store.known_counters = seq, seq, counters
  if store.own then
    store.own[store.epoch] = seq
  end
  return replies.job(jid, 'running', record)
end

-- What the record of a job says (plain_records.leased), which a completion with this token ends as event `seq`, and its
-- queue; nothing, if more is to be done.
local function held(now, text, jid, key, token, seq)
  local of = plain_records.leased(text, jid, key)
  local queue = of and queues.known[of[3]]
  if queue and of[6] == token and queue.row == store.row and queue.is_bare and queue.pending_runs < PENDING and now < queue.day_end
    and now >= queue.day and workers.known[of[5]] and seq < completed.last_seq and now < completed.last
    and now >= completed.first then
    return queue, of
  end
end

-- Complete a job.
function bare.complete(args, simulated)
  local jid, token = args[3], args[4]
  if args[5] or not (simulated and store.calm or store.own) or not arguments.has_own_key(jid) then
    return nil
  end
  local now, moment = register.moment('complete', args[1])
  local key = keys.job(jid)
  local found = store.config and redis.call('MGET', keys.counters, keys.config, key, keys.guard)
    or redis.call('MGET', keys.counters, keys.config, key)
  local text, seq = found[3], store.seq + 1
  if found[1] ~= store.known_counters or found[2] ~= store.config or not text then
    return nil
  end
  local queue, of = held(now, text, jid, key, token, seq)
  if not queue then
    return plain_complete.go_on(now, moment, args, key, text, simulated)
  end

  local id, ran, name, worker, grant = store.id_of(seq), now - of[8], of[3], of[5], of[7]
  ran = store.text(ran > 0 and ran or 0)
  local counters, event, duration, runs = id .. store.tail, id .. store.suffix, ran .. stats.behind(now), queue.pending_runs + 1
  local said = moment .. '\tcompleted\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. token .. '\t' .. ran
  local lease, ended, taker, field = of[1], keys.member_of(id, jid), workers.known[worker], of[11]
  redis.call('MSET', key, plain_records.complete_bare(id, of, moment), keys.counters, counters)
  local one = seq % TRIM > 0 and redis.pcall('XADD', keys.events, event, 'e', said) or store.append_trimming(seq, event, said)
  local two = redis.pcall('RPUSH', queue.runs_key, duration)
  local three = redis.pcall('ZREM', queue.locks_key, lease)
  local four = redis.pcall('HDEL', taker.key, field, grant)
  local five = redis.pcall('ZADD', keys.completed, moment, ended)
  if one ~= event or two ~= runs or three ~= 1 or four ~= 2 or five ~= 1 then
    writes.check_late('complete', seq, {said}, {one, two, three, four, five}, {
      {'RPUSH', queue.runs_key, duration}, {'ZREM', queue.locks_key, lease}, {'HDEL', taker.key, field, grant},
      {'ZADD', keys.completed, moment, ended},
    })
  end
  queue.pending_runs, taker.granted[grant] = runs, nil
  plain_records.forget(text)
  store.seq, store.known_seq, store.known_counters = seq, seq, counters
  if store.own then
    store.own[store.epoch] = seq
  end
  return 'complete'
end

-- Complete a job, and lease the first job of a queue to its worker. It is one step: its two events are one entry.
function bare.complete_and_pop(args, simulated)
  local request, jid, token, wanted, worker = args[2], args[3], args[4], args[5], args[6]
  local queue, taker = queues.known[wanted], workers.known[worker]
  if not queue or queue.pop_row ~= store.row or not taker or taker.row ~= store.row
    or not (simulated and store.calm or store.own) or args[7] and not only_waits(args, 7)
    or not arguments.has_own_key(jid) or not arguments.is_id(request, 64) then
    return nil
  end
  local now, moment = register.moment('complete_and_pop', args[1])
  local expires, grant = now + queue.lease_ms, 'r' .. request
  if not is_open(now, queue, expires) or not is_known(now, taker, grant) then
    return nil
  end
  local key = keys.job(jid)
  local found = store.config and redis.call('MGET', keys.counters, keys.config, key, queue.state_key, keys.guard)
    or redis.call('MGET', keys.counters, keys.config, key, queue.state_key)
  local ended_text, seq = found[3], store.seq + 2
  if found[1] ~= store.known_counters or found[2] ~= store.config or not ended_text or found[4] ~= queue.text then
    return nil
  end
  local ended_queue, of = held(now, ended_text, jid, key, token, seq - 1)
  if not ended_queue or of[5] ~= worker then
    return nil
  end
  local popped, next_jid, next_key, text, stages, tries, both, ready_at, retries, at = take(queue)
  if not stages then
    return plain_complete.go_on_both(
      now, moment, args, queue, expires, key, ended_text, simulated, popped, text)
  end

  local first, id, ends, rest = store.id_of(seq - 1), store.id_of(seq), store.text(expires), string.sub(text, at)
  local waited, ran, behind = now - ready_at, now - of[8], seq % TRIM
  waited, ran = store.text(waited > 0 and waited or 0), store.text(ran > 0 and ran or 0)
  local counters, event, next_token = id .. store.tail, id .. store.suffix, epochs.token_of(id)
  local record = plain_records.running_bare(
    id, stages, wanted, tries, worker, next_token, request, moment, ends, rest)
  local ended_said = moment .. '\tcompleted\t' .. jid .. '\t' .. of[3] .. '\t' .. worker .. '\t' .. token .. '\t' .. ran
  local next_said = moment .. '\tpopped\t' .. next_jid .. '\t' .. wanted .. '\t' .. worker .. '\t' .. waited
  local said, duration, runs, waits = ended_said .. '\n' .. next_said, ran .. stats.behind(now), ended_queue.pending_runs + 1, queue.pending_waits + 1
  local ended_lease, ended, ended_field = of[1], keys.member_of(first, jid), of[11]
  local lease, field = keys.lease_member_of(id, next_jid), 'j' .. next_jid
  local done = redis.pcall(
    'MSET', next_key, record, key, plain_records.complete_bare(first, of, moment), keys.counters, counters)
  if done.err then
    writes.stop_early(keys.counters, done, queue.work_key, popped)
  end
  local one = behind > 1 and redis.pcall('XADD', keys.events, event, 'e', said)
    or store.append_trimming(seq - behind, event, said)
  local two = redis.pcall('RPUSH', ended_queue.runs_key, duration)
  local three = redis.pcall('RPUSH', queue.waits_key, waited)
  local four = redis.pcall('ZREM', ended_queue.locks_key, ended_lease)
  local five = redis.pcall('HDEL', taker.key, ended_field, of[7])
  local six = redis.pcall('ZADD', keys.completed, moment, ended)
  local seven = redis.pcall('ZADD', queue.locks_key, ends, lease)
  local eight = redis.pcall('HSET', taker.key, field, id, grant, next_jid)
  if one ~= event or two ~= runs or three ~= waits or four ~= 1 or five ~= 2 or six ~= 1 or seven ~= 1 or eight ~= 2 then
    writes.check_late(
      'complete\n' .. replies.job(next_jid, 'running', record), seq, {ended_said, next_said},
      {one, two, three, four, five, six, seven, eight}, {
        {'RPUSH', ended_queue.runs_key, duration}, {'RPUSH', queue.waits_key, waited},
        {'ZREM', ended_queue.locks_key, ended_lease}, {'HDEL', taker.key, ended_field, of[7]},
        {'ZADD', keys.completed, moment, ended}, {'ZADD', queue.locks_key, ends, lease},
        {'HSET', taker.key, field, id, grant, next_jid},
      })
  end
  ended_queue.pending_runs, taker.granted[of[7]] = runs, nil
  queue.pending_waits, taker.granted[grant], taker.room = waits, true, taker.room - 1
  plain_records.forget(ended_text)
  plain_records.keep(
    record,
    {lease, plain_records.NEXT[stages], wanted, both, worker, next_token, grant, moment, rest, retries, field, next_key})
  store.seq, store.known_seq, store.known_counters = seq, seq, counters
  if store.own then
    store.own[store.epoch] = seq
  end
  return 'complete\n' .. replies.job(next_jid, 'running', record)
end

bare.ways = {
  put = bare.put, pop = bare.pop, complete = bare.complete, complete_and_pop = bare.complete_and_pop,
}

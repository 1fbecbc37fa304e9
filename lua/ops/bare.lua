-- Put, pop and complete of one job without any option, in a row of plain operations.
--
-- These are by far the most calls, and in a row all that they depend on is known but the job: the counters and the options
-- are those that the last operation left, the state of the queue was decoded, the worker was seen, and its requests are
-- known. So each function here compares, reads the job, and calls the commands of the step, and nothing else. It leaves
-- plain.answer as those of ops/plain.lua do, which do the operation where anything is otherwise: then it has changed nothing.
--
-- A step is whole or not at all here too (state/writes.lua), but nothing is noted on the way: what a failed command makes
-- necessary is made from what the function still has in hand. tests/property/test_plain.py compares the keys.

local bare = {}

local INLINE = 1024 -- the most bytes of data within a record
local FOLD = 127 -- the most durations that are pending after one more, if none is folded


-- Append the event of a step, as its id and its text; give the server's reply.
local function append(seq, id, said)
  return seq % store.TRIM > 0 and redis.pcall('XADD', keys.events, id, 'e', said) or store.append_trimming(seq, id, said)
end

-- Put a new job.
function bare.put(args, simulated)
  local request, name, jid, klass, data = args[2], args[3], args[4], args[5], args[6]
  local queue = queues.known[name]
  if not queue or not data or args[7] or #data > INLINE or not arguments.names[klass] or not arguments.is_id(jid, 128)
    or request ~= '' and not arguments.is_id(request, 64) or queue.idle ~= '0' or queue.first_seen == ''
    or not ((simulated and store.calm or store.own) and queue.options == store.config and queue.is_bare) then
    return
  end
  local _, moment = register.moment('put', args[1])
  local key = keys.job(jid)
  local found = redis.call('MGET', keys.counters, keys.config, key, queue.state_key)
  if found[1] ~= store.known_counters or found[2] ~= store.config or found[3] or found[4] ~= queue.text then
    return
  end

  local seq = store.seq + 1
  local id = store.id_of(seq)
  local counters, event = id .. store.tail, id .. store.suffix
  redis.call('MSET', key, plain_records.waiting_bare(id, name, moment, klass, request, data), keys.counters, counters)
  plain.answer = jid
  local said = moment .. '\tput\t' .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting'
  local member = keys.ready_member_of(moment, id, jid)
  local one = append(seq, event, said)
  local two = redis.pcall('ZADD', queue.work_key, '0', member)
  if one ~= event or two ~= 1 then
    writes.check_late(seq, said, {one, two}, {{'ZADD', queue.work_key, '0', member}})
  end
  store.end_row(seq, counters)
end

-- Lease the first job of a queue to a worker.
function bare.pop(args, simulated)
  local request, name, worker = args[2], args[3], args[4]
  local queue, taker = queues.known[name], workers.known[worker]
  if not queue or not taker or args[5] or not arguments.is_id(request, 64) or queue.paused ~= '0' or queue.admits_at
    or taker.row ~= store.row or queue.row ~= store.row or queue.waits >= FOLD
    or not ((simulated and store.calm or store.own) and queue.options == store.config and queue.is_bare) then
    return
  end
  local now, moment = register.moment('pop', args[1])
  local expires, grant, granted = now + queue.lease_ms, 'r' .. request, taker.granted
  if queue.due <= now or queue.due > expires or taker.seen_at > now or now >= taker.seen_at + 1000 or now >= queue.day_end
    or now < queue.day or plain_pop.leaves(queue) or granted[grant] then
    return
  end
  local found = store.config and redis.call('MGET', keys.counters, keys.config, queue.state_key, keys.guard)
    or redis.call('MGET', keys.counters, keys.config, queue.state_key)
  if found[1] ~= store.known_counters or found[2] ~= store.config or found[3] ~= queue.text then
    return
  end
  local work_key = queue.work_key
  local popped = redis.pcall('ZPOPMIN', work_key)
  local member = popped[1]
  if not member then
    return popped.err and writes.stop_early(work_key, popped)
  end
  local jid = keys.ready_jid_of(member)
  local key = keys.job(jid)
  local text = redis.pcall('GET', key)
  if text and text.err then
    writes.stop_early(key, text, work_key, popped)
  end
  local stages, tries, ready_at, at = string.match(text or '', plain_records.BARE_WAITING)
  stages = stages and plain_records.NEXT[stages]
  if not stages then
    return plain_pop.go_on(now, moment, args, queue, worker, request, expires, simulated, popped)
  end

  local seq, waited = store.seq + 1, now - ready_at
  local id, ends = store.id_of(seq), store.text(expires)
  waited = store.text(waited > 0 and waited or 0)
  local counters, event, token = id .. store.tail, id .. store.suffix, epochs.token_of(id)
  local record = plain_records.running_bare(id, stages, name, tries, worker, token, request, moment, ends, text, at)
  local done = redis.pcall('MSET', key, record, keys.counters, counters)
  if done.err then
    writes.stop_early(keys.counters, done, work_key, popped)
  end
  plain.answer = replies.job(jid, 'running', record)
  local said = moment .. '\tpopped\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. waited
  local lease, field, pending, waits = keys.lease_member_of(id, jid), 'j' .. jid, queue.waits_key, queue.waits + 1
  local one = append(seq, event, said)
  local two = redis.pcall('RPUSH', pending, waited)
  local three = redis.pcall('ZADD', queue.locks_key, ends, lease)
  local four = redis.pcall('HSET', taker.key, field, id, grant, jid)
  if one ~= event or two ~= waits or three ~= 1 or four ~= 2 then
    writes.check_late(seq, said, {one, two, three, four}, {
      {'RPUSH', pending, waited}, {'ZADD', queue.locks_key, ends, lease}, {'HSET', taker.key, field, id, grant, jid}})
  end
  queue.waits, granted[grant] = waits, true
  store.end_row(seq, counters)
end

-- Complete a job.
function bare.complete(args, simulated)
  local jid, token = args[3], args[4]
  if args[5] or not arguments.has_own_key(jid) or not (simulated and store.calm or store.own) then
    return
  end
  local now, moment = register.moment('complete', args[1])
  local key = keys.job(jid)
  local found = store.config and redis.call('MGET', keys.counters, keys.config, key, keys.guard)
    or redis.call('MGET', keys.counters, keys.config, key)
  local text = found[3]
  if found[1] ~= store.known_counters or found[2] ~= store.config or not text then
    return
  end
  local lease, stages, name, tries, retries, worker, held, grant, popped_at, at = string.match(text, plain_records.BARE_RUNNING)
  stages = stages and plain_records.NEXT[stages]
  local queue, taker, seq = queues.known[name], workers.known[worker], store.seq + 1
  if not stages or held ~= token or not queue or not taker or queue.row ~= store.row or queue.runs >= FOLD or now >= queue.day_end
    or now < queue.day or queue.options ~= store.config or not queue.is_bare or not completed.keeps_all(now, seq) then
    return
  end

  local id, ran = store.id_of(seq), now - popped_at
  ran = store.text(ran > 0 and ran or 0)
  local counters, event = id .. store.tail, id .. store.suffix
  redis.call('MSET', key, plain_records.complete_bare(
    id, stages, name, tries, retries, token, popped_at, moment, text, at), keys.counters, counters)
  plain.answer = 'complete'
  local said = moment .. '\tcompleted\t' .. jid .. '\t' .. name .. '\t' .. worker .. '\t' .. token .. '\t' .. ran
  local member, ended, duration, pending = keys.lease_member_of(lease, jid), keys.member_of(id, jid), ran .. stats.behind(now), queue.runs_key
  local field, runs = 'j' .. jid, queue.runs + 1
  grant = 'r' .. grant
  local one = append(seq, event, said)
  local two = redis.pcall('RPUSH', pending, duration)
  local three = redis.pcall('ZREM', queue.locks_key, member)
  local four = redis.pcall('HDEL', taker.key, field, grant)
  local five = redis.pcall('ZADD', keys.completed, moment, ended)
  if one ~= event or two ~= runs or three ~= 1 or four ~= 2 or five ~= 1 then
    writes.check_late(seq, said, {one, two, three, four, five}, {
      {'RPUSH', pending, duration}, {'ZREM', queue.locks_key, member}, {'HDEL', taker.key, field, grant},
      {'ZADD', keys.completed, moment, ended}})
  end
  queue.runs, taker.granted[grant] = runs, nil
  store.end_row(seq, counters)
end

bare.ways = {put = bare.put, pop = bare.pop, complete = bare.complete}

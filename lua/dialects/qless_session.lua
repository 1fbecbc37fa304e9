-- One call of the qless dialect, twin of qmodel/dialects/qless/session.py: calls the engine, turns refusals into
-- qless's sentences, and publishes.
--
-- The operations of a call run in one step of Redis, and all but the last only read: so the call is atomic, as each
-- operation is.

local qless_session = {}

local NAMES = {
  delay_ms = 'delay', jids = 'jid', queues = 'queue', workers = 'worker', dependencies = 'depends', at = 'date',
  interval_ms = 'interval', offset_ms = 'offset',
}

local SENTENCES = {
  JOB_NOT_FOUND = 'Job {0} does not exist',
  LOCK_LOST = 'Job {0} is not currently running: {2}',
  WRONG_STATE = 'Job {0} is {1}',
  DEPENDENCY_NOT_FOUND = 'Job {1} does not exist',
  DEPENDENCY_CYCLE = 'Jobs would wait for each other for ever: {0}',
  DEPENDENCY_LIMIT = 'Job {0} has more dependents or dependencies than one call can see to (1000)',
  CANCEL_LIMIT = 'Canceling {0} would take more than 1000 jobs or dependencies with it',
  HAS_DEPENDENTS = '{0} is a dependency of {1} but is not mentioned to be canceled',
  QUEUE_NOT_EMPTY = 'Queue {0} still has jobs: {1}',
  DUPLICATE_JID = 'Job {0} is named twice',
  SCHEDULE_NOT_FOUND = 'No recurring job {0}',
  UNKNOWN_OPTION = 'There is no option {0}',
  BAD_VALUE = 'Option {0} must be from {1} to {2}',
  OVER_BUDGET = 'This is too much work for one call: send at most {3} items of this size',
  LIMIT_REACHED = 'The limit of {1} {0} is reached',
  SCHEDULE_OVER = 'Recurring job {0} would have no run',
}

local FORGOTTEN = 'qless:forgotten' -- metadata: queues with jobs that were taken off the list: gone, or since when back
qless_session.GONE = 'gone'

-- Begin a call at a moment, with the reply shapes of a document, of reqless or of qless itself. In qless higher
-- priorities run first.
function qless_session.begin(now, document, reqless, early)
  qless_session.reqless = reqless
  qless_session.early = early -- of the versions of reqless that had the names of qless
  qless_session.now = now
  qless_session.moment = qless_texts.digits(now)
  qless_session.document = document
  qless_session.sign = document and 1 or -1
  store.rest()
end

-- End a call with a sentence. `by_state`: its form was valid, but not the state of the job.
function qless_session.fail(sentence, by_state)
  qless_session.raised = {sentence = sentence, by_state = by_state}
  error('qless', 0)
end

-- What a kind of argument may be.
local function expected(kind)
  if kind.kind == 'name' then
    return '1 to ' .. kind.most .. ' bytes without control characters'
  elseif kind.kind == 'id' then
    local endings = table.concat(arguments.reserved, ', ')
    return '1 to ' .. kind.most .. ' visible ASCII characters, not ending in ' .. endings
  elseif kind.kind == 'text' then
    return 'text of at most ' .. kind.most .. ' bytes in UTF-8'
  elseif kind.kind == 'whole' then
    return string.format('a whole number from %d to %d', kind.low, kind.high)
  end
  if kind.kind == 'edge' then
    return 'a job id (' .. expected(catalogue.id) .. '), alone or with one of block, fail, ignore, cancel, and then perhaps '
      .. 'a name of 1 to 64 visible ASCII characters, with spaces between; or a request id, the word request, and perhaps a '
      .. 'policy'
  elseif kind.kind == 'awaited' then
    return 'a job id (' .. expected(catalogue.id) .. '), or a request id and the word request'
  end
  return kind.least .. ' to ' .. (kind.most or catalogue.most) .. ' values, each ' .. expected(kind.item)
end

local function refuse(command, operation, refusal, sentences)
  if refusal[1] == 'BAD_ARGUMENT' then
    local name = refusal[3]
    local kind = catalogue.operations[operation].arguments[name]
    qless_session.fail(command .. '(): Arg "' .. (NAMES[name] or name) .. '" must be ' .. expected(kind))
  end
  local sentence = sentences and sentences[refusal[1]] or SENTENCES[refusal[1]]
  local filled = string.gsub(sentence, '{(%d)}', function(n)
    return refusal[n + 2]
  end)
  qless_session.fail(command .. '(): ' .. filled, true)
end

-- Refuse a call with an argument that would be refused by an operation that it executes later, after others.
function qless_session.check(command, operation, args)
  local given = {'', '', unpack(args)}
  refusals.raised = false
  local done, fault = pcall(catalogue.operations[operation].decode, operation, given, 3, #given)
  if refusals.raised then
    refuse(command, operation, refusals.raised)
  elseif not done then
    error(fault, 0)
  end
end

-- Refuse a call that would give a klass more keys than it may have.
function qless_session.check_room(command, klass, count)
  if count > metadata.MOST then
    refuse(command, 'metadata_set', {'LIMIT_REACHED', 'keys of klass ' .. klass, metadata.MOST})
  end
end

local function step(operation, args)
  table.insert(args, 1, qless_session.moment)
  table.insert(args, 2, '')
  local real = not qless_session.simulated
  local reply = register.call(operation, keys.prefix, args, real)
  store.rest()
  if type(reply) ~= 'table' then
    return {'OK', reply} -- a plain put or completion; pops by the rules of qless are not plain
  elseif reply.err then
    error(reply.err, 0)
  end
  return reply
end

-- Execute an operation; a refusal becomes a sentence of the command, or the one given for its code.
function qless_session.ask(command, operation, args, sentences)
  local reply = step(operation, args)
  if reply[1] ~= 'OK' then
    refuse(command, operation, reply, sentences)
  end
  return reply[2]
end

-- Execute an operation at another moment.
function qless_session.ask_at(now, command, operation, args)
  local before = qless_session.moment
  qless_session.moment = qless_texts.digits(now)
  local done, reply = pcall(qless_session.ask, command, operation, args)
  qless_session.moment = before
  if not done then
    error(reply, 0)
  end
  return reply
end

-- Execute an operation; give its reply, `OK` first, or its refusal.
function qless_session.attempt(operation, args)
  return step(operation, args)
end

-- ---- the state

-- Begin to read the state as it is now.
local function look()
  store.begin(qless_session.now, qless_session.moment, false)
  store.open()
  records.begin()
  queues.begin()
end

-- A text that the dialect keeps: metadata of a klass that no job has.
function qless_session.note(klass, key)
  return metadata.get(klass, key)
end

-- The engine's value of an option.
function qless_session.option(name)
  look()
  return config.value(name)
end

-- The record of a job, or nil, as for a text that is no id: some of these would name another key of a job.
function qless_session.stored(jid)
  look()
  return arguments.has_own_key(jid) and jobs.get(jid) or nil
end

-- Make jobs that have become due ready from now; of one moment the later names come first, as in qless. Give how many.
function qless_session.notice(command, queue, most)
  look()
  local due = {}
  for i, place in ipairs(queues.in_time(queue, '-scheduled', '-inf', qless_session.now, most)) do
    due[i] = place[2]
  end
  table.sort(due, function(a, b)
    return config.before(b, a)
  end)
  for _, jid in ipairs(due) do
    qless_session.ask(command, 'delay', {jid, '0'})
  end
  return #due
end

-- Count the leases of a queue that have not lapsed.
function qless_session.running(queue)
  look()
  return queues.size(queue, '-locks') - queues.count(queue, '-locks', qless_session.now - 1)
end

-- The jobs of a queue with leases that have lapsed, or that have not; earliest end first.
function qless_session.leased(queue, lapsed, offset, count)
  look()
  local low = lapsed and '-inf' or qless_session.now - 1
  local high = lapsed and qless_session.now or '+inf'
  local found, jids = queues.in_time(queue, '-locks', low, high, catalogue.most), {}
  for i = offset + 1, math.min(offset + count, #found) do
    jids[#jids + 1] = found[i][2]
  end
  return jids
end

-- The recurring jobs of a queue, next due first; those of one due time by id, among the first 1000.
function qless_session.recurring(queue, offset, count)
  if count == 0 then
    return {}
  elseif offset + count > catalogue.most then
    local args = {queue, 'offset', qless_texts.digits(offset), 'count', qless_texts.digits(count)}
    return qless_session.ask('Jobs', 'recurring', args)[2]
  end
  look()
  local found, jids = queues.in_time(queue, '-recur', '-inf', '+inf', catalogue.most), {}
  for i = offset + 1, math.min(offset + count, #found) do
    jids[#jids + 1] = found[i][2]
  end
  return jids
end

-- Count the jobs of a queue whose lease was ended by a timeout.
function qless_session.ended(queue)
  return queues.count(queue, '-locks', '-inf')
end

-- The next jobs of a queue without a lease: those whose lease was ended, then those in order.
function qless_session.ready(queue, count)
  look()
  local _, jids = queues.page(queue, '-locks', '-inf', '-inf', 0, catalogue.most)
  table.sort(jids, function(a, b)
    return config.before(b, a)
  end)
  for _, jid in ipairs(queues.order(queue, 0, count)) do
    jids[#jids + 1] = jid
  end
  return {unpack(jids, 1, math.min(count, #jids))}
end

-- Whether a queue is paused.
function qless_session.is_paused(queue)
  look()
  return queues.has_pauses(queue) and #pauses.lasting(qless_session.now, queue) > 0
end

-- Whether a queue may have due runs.
function qless_session.fires(name)
  look()
  local queue = queues.of(name)
  return queue.recur <= qless_session.now
end

-- Whether a queue is on the engine's list.
function qless_session.is_listed(name)
  look()
  local queue = queues.of(name)
  return queue.first_seen ~= ''
end

-- The queues on the list, first seen first.
function qless_session.listed()
  local seen, names = {}, {}
  local found = qless_session.ask('Queues', 'queues', {'offset', '0', 'count', '1000'})
  look()
  for _, one in ipairs(found) do
    local again, queue = qless_session.note(FORGOTTEN, one[1]), queues.of(one[1])
    if again ~= qless_session.GONE then
      local moment = again and metadata.whole(again)
      seen[#seen + 1] = {moment or tonumber(queue.first_seen), one[1]}
    end
  end
  table.sort(seen, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and config.before(a[2], b[2])
  end)
  for i, one in ipairs(seen) do
    names[i] = one[2]
  end
  return names
end

-- Note of a queue whether it is on the list although the engine lists it.
function qless_session.forget(queue, gone)
  if gone then
    qless_session.ask('Queue.forget', 'metadata_set', {FORGOTTEN, queue, qless_session.GONE})
  else
    qless_session.attempt('metadata_unset', {FORGOTTEN, queue})
  end
end

-- List a queue again, as a new one, that was taken off the list although it had jobs.
function qless_session.remember(queue)
  look()
  if qless_session.note(FORGOTTEN, queue) == qless_session.GONE then
    qless_session.ask('Queue', 'metadata_set', {FORGOTTEN, queue, qless_session.moment})
  end
end

-- ---- throttles

-- The throttles that a job names.
function qless_session.named(jid)
  local job = qless_session.stored(jid)
  return job and throttles.named(job) or {}
end

-- Count the jobs that hold a throttle.
function qless_session.holding(name)
  look()
  return throttles.running(name)
end

-- The jobs that hold a throttle.
function qless_session.holders(name)
  look()
  return throttles.holders(name, catalogue.most)
end

-- Whether a job holds a throttle.
function qless_session.holds(jid, name)
  local job = qless_session.stored(jid)
  if job and (job.state == 'running' or job.state == 'stalled') then
    for _, counted in ipairs(throttles.counted(job)) do
      if counted == name then
        return true
      end
    end
  end
  return false
end

-- The throttle at which a job is parked, or nil.
function qless_session.gate(jid)
  local job = qless_session.stored(jid)
  return job and job.state == 'throttled' and options.get(job, 'gate') or nil
end

-- The ids of a list of pairs, in its order: by a number, then by id.
local function in_turn(found)
  table.sort(found, function(one, other)
    return one[1] < other[1] or one[1] == other[1] and config.before(one[2], other[2])
  end)
  for i, one in ipairs(found) do
    found[i] = one[2]
  end
  return found
end

-- The jobs that are parked at a throttle, in the order in which they were parked.
function qless_session.parked_at(name)
  look()
  return in_turn(parked.waiting(name, catalogue.most))
end

-- The jobs of a queue that are parked, in the order in which they were.
function qless_session.parked_in(queue)
  local found = {}
  for i, jid in ipairs(qless_session.ask('Jobs', 'throttled', {queue, 'offset', '0', 'count', '1000'})[2]) do
    local job = qless_session.stored(jid)
    found[i] = {tonumber(options.get(job, 'parked') or 0), jid}
  end
  return in_turn(found)
end

-- Of some jobs those that wait, and are ready from this moment; or would be, had the clock not gone back since their put.
function qless_session.ready_of(jids)
  local found = {}
  for _, jid in ipairs(jids) do
    local job = qless_session.stored(jid)
    local again = job and job.state == 'scheduled' and tonumber(job.ready_at) == tonumber(job.put_at)
    if again then
      qless_session.ask('Delay', 'delay', {jid, '0'})
    end
    if again or job and job.state == 'waiting' and tonumber(job.ready_at) == qless_session.now then
      found[#found + 1] = jid
    end
  end
  return found
end

-- ---- events

-- The sequence of the last event.
function qless_session.seq()
  look()
  return store.last()
end

-- The kept events since a sequence number: each as its time, its kind and its facts.
function qless_session.events(seq)
  local found = {}
  while true do
    local page = qless_session.ask('Events', 'events', {'after', qless_texts.digits(seq), 'count', '1000'})
    for _, event in ipairs(page) do
      local parts = {}
      for part in string.gmatch(event[2] .. '\t', '([^\t]*)\t') do
        parts[#parts + 1] = part
      end
      found[#found + 1] = parts
      seq = tonumber(event[1])
    end
    if #page < 1000 then
      return found
    end
  end
end

-- ---- publishing

function qless_session.say(channel, message)
  store.publish(channel, message)
end

-- Publish facts to `log`.
function qless_session.log(facts)
  qless_session.say('log', qless_texts.facts(facts))
end

-- Publish a job's id, if the job is tracked.
function qless_session.tracked(channel, jid)
  if tracking.is_tracked(jid) then
    qless_session.say(channel, jid)
  end
end

-- Tell a worker, and the log, that it lost a job.
function qless_session.lost(jid, worker)
  local told = qless_texts.facts({'jid', jid, 'event', 'lock_lost', 'worker', worker})
  qless_session.say('w:' .. worker, told)
  qless_session.say('log', told)
end

-- ---- jobs

-- The state of a viewed job as it is stored: a job that is due is scheduled, and one with a lapsed lease is running,
-- until a pop notices. A job that a timeout has taken is stalled until its next claim. A job that waits for a throttle is
-- waiting for qless, which has none, and one that was admitted is throttled for reqless until its next claim.
function qless_session.state(view)
  local job = records.get(view[1])
  if job.state == 'waiting' and options.get(job, 'ended') then
    return 'stalled'
  end
  if not qless_session.reqless then
    return job.state == 'throttled' and 'waiting' or job.state
  end
  return job.state == 'waiting' and options.get(job, 'gate') and 'throttled' or job.state
end

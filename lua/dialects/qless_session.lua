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
}

-- Begin a call at a moment, with the reply shapes of a document or of qless itself. In qless higher priorities run
-- first.
function qless_session.begin(now, document)
  qless_session.now = now
  qless_session.moment = qless_texts.digits(now)
  qless_session.document = document
  qless_session.sign = document and 1 or -1
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
      .. 'a name of 1 to 64 visible ASCII characters, with spaces between'
  end
  return kind.least .. ' to ' .. catalogue.most .. ' values, each ' .. expected(kind.item)
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

local function step(operation, args)
  table.insert(args, 1, qless_session.moment)
  table.insert(args, 2, '')
  local real = not qless_session.simulated
  local reply = register.call(operation, keys.prefix, args, real)
  if reply.err then
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

-- Execute an operation on an option; say whether the option exists.
function qless_session.knows(command, operation, args)
  local reply = step(operation, args)
  if reply[1] ~= 'OK' and reply[1] ~= 'UNKNOWN_OPTION' then
    refuse(command, operation, reply)
  end
  return reply[1] == 'OK'
end

-- The sequence of the last event.
function qless_session.seq()
  store.begin(qless_session.now, qless_session.moment, false)
  store.open()
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

-- The state of a viewed job in qless's words: a job with a lapsed lease is running until a pop takes it.
function qless_session.state(view)
  local job = records.get(view[1])
  return view[2] == 'stalled' and job.worker ~= '' and 'running' or view[2]
end

-- The only dispatch, the twin of qmodel/model/engine.py: decode, call, encode.
--
--   FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ...
--
-- `now` is milliseconds since the epoch, or empty for the server's clock. `request` identifies a repeated call, or is
-- empty. The reply is a list: `OK` and the operation's reply, or a refusal's code and its facts. A refusal is not an
-- error: errors are for bugs of this library. A refusal is raised before the blank line of a verb, so nothing has been
-- written by then.

local register = {}

local second, began -- the last second of the server's clock, and its first millisecond
local last, last_text -- the last millisecond of the server's clock, shared by many operations

-- The moment of the operation, as a number and as text: the caller's, or the server's.
local function moment(operation, text)
  if text == '' then
    local time = redis.call('TIME')
    if time[1] ~= second then
      second, began = time[1], time[1] * 1000
    end
    local ms = time[2] / 1000
    local now = began + (ms - ms % 1)
    if now ~= last then
      last, last_text = now, string.format('%d', now)
    end
    return last, last_text
  end
  return arguments.accept(catalogue.time, text) or refusals.refuse('BAD_ARGUMENT', operation, 'now'), text
end

-- Read everything that the operation names with one command, and several jobs with another one.
local function prefetch(op)
  local jid, name = op.jid, op.queue
  local key, text, state
  if jid then
    key = keys.job(jid)
    text, state = store.open(key, name and queues.state_key(name))
  elseif name then
    state = store.open(queues.state_key(name))
  else
    store.open()
  end
  records.begin(jid, key, text)
  queues.begin(name, state)
  local several = op.jids or op.jobs
  if several then
    local jids = {}
    for i = 1, #several do
      jids[i] = op.jids and several[i] or several[i].jid
    end
    records.prefetch(jids)
  end
end

-- Answer a repeated request from memory, or execute a new one and remember its reply.
local function remembered(now, operation, op, verb)
  local request = operation .. ' ' .. op.request
  local reply = idempotency.recall(request)
  if reply == nil then
    reply = verb(now, op)
    idempotency.remember(request, reply)
  end
  return reply
end

-- Write everything that an operation has buffered.
local function flush(spec, now)
  if spec.cascades then
    propagation.propagate(now)
  end
  if store.cascade then
    cascade.flush()
  end
  if store.durations then
    stats.flush()
  end
  store.flush()
end

-- Whether the call was decoded and may be recorded; whether the journal is on; the moment and the request, as text.
local understood, journals, moment_text, request

local function execute(operation, args)
  local spec = catalogue.operations[operation]
  local now, text = moment(operation, args[1] or '')
  local op = spec.decode(operation, args, 3, #args)
  request = ''
  if spec.asks then
    request = args[2] or ''
    if request ~= '' and not arguments.is_id(request, catalogue.request.most) then
      refusals.refuse('BAD_ARGUMENT', operation, 'request')
    end
    op.request = request -- overrides an argument of that name, which is for nested operations
  end
  store.begin(now, text, op.jobs or op.jids or op.count and op.count > 1)
  budget.begin()
  prefetch(op)
  if not spec.reads then
    understood, journals, moment_text = true, store.config and journal.is_on(), text
  end
  local verb = verbs[operation]
  local reply
  if spec.memo and request ~= '' then
    reply = remembered(now, operation, op, verb)
  else
    reply = verb(now, op)
  end
  if not spec.reads then
    flush(spec, now)
  end
  return reply
end

-- Write a refusal for the wire; pass on any other error.
local function refusal_of(fault)
  if not refusals.raised then
    error(fault, 0)
  end
  for i, fact in ipairs(refusals.raised) do
    refusals.raised[i] = tostring(fact)
  end
  return refusals.raised
end

-- Execute one operation under a prefix; give the reply for the wire.
function register.call(operation, prefix, args)
  keys.begin(prefix)
  refusals.raised, understood = false, false
  local done, reply = pcall(execute, operation, args)
  if reply == nil then
    reply = false -- false becomes a nil on the wire; a nil in a list would end the list
  end
  local outcome = done and {'OK', reply} or refusal_of(reply)
  if understood and (journals or operation == 'config_set' and journal.is_on()) then
    args[1], args[2] = moment_text, request
    journal.record(operation, args, outcome)
  end
  return outcome
end

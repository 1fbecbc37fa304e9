-- The only dispatch, the twin of qmodel/model/engine.py: decode, call, encode.
--
--   FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ...
--
-- `now` is milliseconds since the epoch, or empty for the server's clock. `request` identifies a repeated call, or is
-- empty. The reply is a list: `OK` and the operation's reply, or a refusal's code and its facts. A refusal is not an
-- error: errors are for commands that fail inside a step (state/writes.lua) and for bugs of this library. A refusal is
-- raised before the blank line of a verb, so nothing has been written by then.
--
-- Several operations may share a call (wire/calls.lua).

local register = {}

local NONE = {} -- of texts

local second, began -- the last second of the server's clock, and its first millisecond
local last, last_text -- the last millisecond of the server's clock, shared by many operations
local shares, shared = false, false -- whether this call has several operations, and has read the clock

-- The moment of the operation, as a number and as text: the caller's, or the server's.
function register.moment(operation, text)
  if text == '' and shared then
    return last, last_text
  elseif text == '' then
    shared = shares
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

-- Say whether the operations that follow share a call.
function register.share(on)
  shares, shared = on, false
  store.share(on)
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

-- Whether the call was decoded and may be recorded; whether the journal is on; the moment and the request, as text.
local understood, journals, moment_text, request
local answer -- what the verb replied, once it has

-- Record the call, if it is to be recorded.
local function record(operation, args, outcome)
  if understood and (journals or operation == 'config_set' and journal.is_on()) then
    args[1], args[2] = moment_text, request
    journal.record(operation, args, outcome)
  end
end

-- Write everything that an operation has buffered.
local function flush(spec, now, operation, args)
  if spec.cascades then
    propagation.propagate(now)
  end
  if store.cascade then
    cascade.flush()
  end
  if store.durations or store.counts or store.parts or store.by_tags then
    stats.flush()
  end
  if store.tagged then
    tags.flush()
  end
  if store.replies then
    idempotency.flush()
  end
  if store.requests then
    requests.flush()
  end
  record(operation, args, answer)
  store.flush()
end

-- Read what an operation names.
local function open(op, now, text)
  store.begin(now, text, op.jobs or op.jids or op.count and op.count > 1)
  budget.begin()
  prefetch(op)
end

-- Do what earlier steps have left to do, and read again; keep the step away from keys of commands that still fail, and
-- give these commands.
local function mend(op, now, text, reads)
  local left = intent.mend(reads)
  open(op, now, text)
  writes.block(left)
  return left
end

-- Begin an epoch in a step of its own, because the last step may have been lost or made by another server. The journal
-- records it as an operation.
local function begin_epoch(now, text)
  local epoch = epochs.next_(now)
  epochs.begin(now, epoch)
  if store.config and journal.is_on() then
    journal.record('begin_epoch', {text, '', store.epoch}, {'OK', epoch})
  end
  store.flush()
  epochs.remember(true)
end

-- Begin the step: forget the one before, read what the operation names, and see to what must come first.
local function begin(operation, spec, op, now, text, simulated)
  store.reads = spec.reads
  open(op, now, text)
  local left = store.pending and mend(op, now, text, spec.reads) or NONE
  if spec.reads then
    return
  end
  if not simulated and operation ~= 'begin_epoch' and epochs.is_foreign() then
    begin_epoch(now, text)
    open(op, now, text)
    writes.block(left)
  end
  understood, journals, moment_text = true, store.config and journal.is_on(), text
end

-- The request of a call, or nothing.
local function request_of(operation, spec, text)
  if not spec.asks or not text or text == '' then
    return ''
  elseif not arguments.is_id(text, catalogue.request.most) then
    refusals.refuse('BAD_ARGUMENT', operation, 'request')
  end
  return text
end

-- Try an operation in the plain case.
local function try(operation, args, simulated, way)
  local now, text = register.moment(operation, args[1] or '')
  store.begin_plain()
  way(now, text, args, simulated)
  if not plain.answer and store.entered then
    writes.take_back()
    store.entered = false
  end
end

local function execute(operation, args, simulated)
  local now, text = register.moment(operation, args[1] or '')
  local spec = catalogue.operations[operation]
  local op = spec.decode(operation, args, 3, #args)
  request = request_of(operation, spec, args[2])
  if spec.asks then
    op.request = request -- overrides an argument of that name, which is for nested operations
  end
  begin(operation, spec, op, now, text, simulated)
  local verb = verbs[operation]
  local reply
  if spec.memo and request ~= '' then
    reply = remembered(now, operation, op, verb)
  else
    reply = verb(now, op)
  end
  if reply == nil then
    reply = false -- false becomes a nil on the wire; a nil in a list would end the list
  end
  answer = {'OK', reply}
  if not spec.reads then
    flush(spec, now, operation, args)
    epochs.remember(not simulated)
  end
end

-- Write a refusal for the wire.
local function refusal()
  for i, fact in ipairs(refusals.raised) do
    refusals.raised[i] = tostring(fact)
  end
  return refusals.raised
end

-- Give the refusal, after it was recorded.
local function refused(operation, args, outcome)
  record(operation, args, outcome)
  writes.commit(NONE, 0)
end

-- End a refused call: undo it, and record it. Say whether no error has stopped that, or give the error.
local function end_refused(operation, args)
  answer = refusal()
  local fault = store.entered and writes.forget() or nil
  if understood and not fault then
    return pcall(refused, operation, args, answer)
  end
  return not fault, fault
end

-- An error as a reply, which is one line.
local function as_reply(fault)
  return {err = (string.gsub(tostring(fault), '[\r\n]+', ' '))}
end

-- Execute an operation that is not done in a row, or failed there; give the reply for the wire.
local function go_on(operation, args, simulated, real, done, fault)
  local way = done and plain.ways[operation]
  if way then
    done, fault = pcall(try, operation, args, simulated, way)
    if done and plain.answer then
      return plain.answer
    end
  end
  understood, answer = false, false
  if done then
    done, fault = pcall(execute, operation, args, simulated)
  end
  if not done and refusals.raised then
    done, fault = end_refused(operation, args)
  end
  if not done then
    fault = type(fault) == 'table' and fault.err or fault -- some servers give a table
    fault = store.entered and writes.recover(fault) or not store.entered and fault
    if fault then
      return as_reply(fault)
    end
  end
  if answer then
    return real == nil and replies.packed(operation, answer) or answer
  end
  return plain.answer or register.call(operation, keys.prefix, args, real, shares) -- only the epoch was begun, and that was completed
end

-- Execute one operation under a prefix; give the reply for the wire. An error that is no refusal is given as an error
-- reply, after the store has undone the step, or has seen to it that it will be completed. A call whose moment is not
-- that of the clock is simulated, unless a dialect says that it is not: to that, `real` is never nil, and it gets an answer that
-- a verb gives as a list. `several`: others share this call of the server. (A call with several may have been killed.)
function register.call(operation, prefix, args, real, several)
  if shares and not several then
    register.share(false)
  end
  keys.begin(prefix)
  refusals.raised, store.entered, plain.answer = false, false, false
  local simulated, way, done, fault = not real and (args[1] or '') ~= '', bare.ways[operation], true, nil
  if way then
    done, fault = pcall(way, args, simulated)
    if done and fault then
      return fault
    end
  end
  return go_on(operation, args, simulated, real, done, fault)
end

local function try_group(operation, args, places, sizes)
  local text = args[places[1]]
  local now, said = register.moment(operation, text)
  store.begin_plain()
  return plain.groups[operation](now, said, args, places, sizes, text ~= '')
end

-- Try several operations of one kind that share a call (ops/plain.lua), of which each begins at a place among the
-- arguments; give how many were done, which may be none, and their replies. After an error nothing was done; but if their
-- first write that lasts was done, the error is the reply of each, unless the store completes them.
function register.group(operation, prefix, args, places, sizes)
  keys.begin(prefix)
  refusals.raised, store.entered, plain.answer = false, false, false
  local done, count = pcall(try_group, operation, args, places, sizes)
  if done then
    return count, plain.answer
  elseif not store.entered then
    return 0
  end
  local begun, replies = writes.has_begun(), plain.answer
  local fault = writes.recover(type(count) == 'table' and count.err or count)
  if not begun then
    return 0
  end
  for i = 1, fault and #replies or 0 do
    replies[i] = as_reply(fault)
  end
  return #replies, replies
end

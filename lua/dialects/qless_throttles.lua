-- Commands of reqless for throttles and queue patterns, twin of qmodel/dialects/qless/throttles.py.
--
-- A throttle of reqless is one of ours with a concurrency. What the engine does not keep, a throttle's maximum when it has
-- none and its end, is kept as metadata; so are the patterns, which only bindings read.

local qless_throttles = {}

local THROTTLES = 'qless:throttles' -- the maximum and the end (milliseconds; 0: none) of each throttle
local IDENTIFIERS, PRIORITIES = 'qless:identifiers', 'qless:priorities'
local ALL, EVEN = '["*"]', '{"fairly": false, "pattern": ["default"]}'
local OWN = 'ql:q:'

local need = qless_arguments.need

local function ask(...)
  return qless_session.ask(...)
end

local function is_own(tid)
  return string.sub(tid, 1, #OWN) == OWN
end

-- The engine's name of a throttle.
local function ours(tid)
  return is_own(tid) and 'queue/' .. string.sub(tid, #OWN + 1) or tid
end

-- The maximum and the end of a throttle; nil if it was not set, or has ended.
local function kept_of(tid)
  qless_session.seq()
  local note = qless_session.note(THROTTLES, tid)
  if not note then
    return nil
  end
  local maximum, ends_at = string.match(note, '^(%d+) (%d+)$')
  maximum, ends_at = tonumber(maximum), tonumber(ends_at)
  if ends_at > 0 and ends_at <= qless_session.now then
    return nil
  end
  return maximum, ends_at
end

-- Set how many jobs of a throttle may run at once, perhaps for some seconds only; 0: any number.
function qless_throttles.throttle_set(tid, maximum, expiration)
  tid = need('throttle.set', 'tid', tid)
  local most = qless_arguments.whole_of('throttle.set', 'max', maximum)
  local seconds = qless_arguments.whole_of('throttle.set', 'expiration', expiration or '0')
  if most > 0 then
    ask('throttle.set', 'throttle_set', {ours(tid), 'concurrency', qless_texts.digits(most)})
  else
    ask('throttle.set', 'throttle_unset', {ours(tid)})
  end
  local ends_at = seconds > 0 and qless_session.now + seconds * 1000 or 0
  local note = qless_texts.digits(math.max(most, 0)) .. ' ' .. qless_texts.digits(ends_at)
  ask('throttle.set', 'metadata_set', {THROTTLES, tid, note})
end

-- Show a throttle.
function qless_throttles.throttle_get(tid)
  tid = need('throttle.get', 'tid', tid)
  local maximum, ends_at = kept_of(tid)
  local left = not maximum and -2 or ends_at == 0 and -1 or math.ceil((ends_at - qless_session.now) / 1000)
  return qless_texts.record({
    'id', qless_texts.quote(tid), 'maximum', qless_texts.digits(maximum or 0), 'ttl', qless_texts.digits(left),
  })
end

-- Remove a throttle's limit.
function qless_throttles.throttle_delete(tid)
  tid = need('throttle.delete', 'tid', tid)
  ask('throttle.delete', 'throttle_unset', {ours(tid)})
  ask('throttle.delete', 'metadata_unset', {THROTTLES, tid})
end

-- Remove the limits whose time is over.
function qless_throttles.end_throttles()
  for _, pair in ipairs(ask('queue.pop', 'metadata_get', {THROTTLES})) do
    local ends_at = tonumber(string.match(pair[2], '%d+$'))
    if ends_at > 0 and ends_at <= qless_session.now then
      qless_throttles.throttle_delete(pair[1])
    end
  end
end

-- Set how many jobs of a queue may run at once.
function qless_throttles.queue_throttle_set(queue, maximum)
  return qless_throttles.throttle_set(OWN .. qless_arguments.need_queue(queue), maximum)
end

-- Show the throttle of a queue.
function qless_throttles.queue_throttle_get(queue)
  return qless_throttles.throttle_get(OWN .. qless_arguments.need_queue(queue))
end

-- The throttles that a job names.
local function named(job)
  local names = {}
  for name in string.gmatch(options.get(job, 'throttles') or '', '%S+') do
    names[name] = true
  end
  return names
end

local function holders(tid)
  local held, seen = {}, {}
  for _, name in ipairs(qless_session.listed()) do
    if tid == OWN .. name or not is_own(tid) then
      for _, lapsed in ipairs({true, false}) do
        for _, jid in ipairs(qless_session.leased(name, lapsed, 0, catalogue.most)) do
          local job = qless_session.stored(jid)
          if not seen[jid] and job and (is_own(tid) or named(job)[tid]) then
            seen[jid] = true
            held[#held + 1] = jid
          end
        end
      end
    end
  end
  table.sort(held, config.before)
  return held
end

-- List the jobs that hold a throttle, by id.
function qless_throttles.throttle_locks(tid)
  return qless_texts.quoted(holders(need('throttle.locks', 'tid', tid)))
end

-- List the jobs that wait for a throttle, without those that the next pop may take.
function qless_throttles.throttle_pending(tid)
  local _, rest = qless_throttles.parked(need('throttle.pending', 'tid', tid))
  return qless_texts.quoted(rest)
end

local function throttled(command, name)
  return ask(command, 'throttled', {name, 'offset', '0', 'count', '1000'})[2]
end

-- The jobs that wait for a throttle: those for which it has room, and the others.
function qless_throttles.parked(tid)
  local found, free, rest = {}, {}, {}
  for _, name in ipairs(qless_session.listed()) do
    for _, jid in ipairs(throttled('throttle.pending', name)) do
      local job = qless_session.stored(jid)
      if job and options.get(job, 'gate') == tid then
        found[#found + 1] = jid
      end
    end
  end
  local maximum = kept_of(tid)
  local room = maximum and maximum > 0 and math.max(maximum - #holders(tid), 0) or #found
  for i, jid in ipairs(found) do
    local part = i <= room and free or rest
    part[#part + 1] = jid
  end
  return free, rest
end

-- The jobs of a queue that wait for a throttle which has room again: reqless counts them as waiting.
function qless_throttles.let_through(name)
  local jids, gates, free, found = throttled('queue.counts', name), {}, {}, {}
  for _, jid in ipairs(jids) do
    local job = qless_session.stored(jid)
    local gate = job and options.get(job, 'gate') or ''
    if not gates[gate] then
      gates[gate] = true
      for _, one in ipairs((qless_throttles.parked(gate))) do
        free[one] = true
      end
    end
  end
  for _, jid in ipairs(jids) do
    if free[jid] then
      found[#found + 1] = jid
    end
  end
  return found
end

-- The jobs of a queue that wait for a throttle which has no room.
function qless_throttles.kept_back(name)
  local free, rest = {}, {}
  for _, jid in ipairs(qless_throttles.let_through(name)) do
    free[jid] = true
  end
  for _, jid in ipairs(throttled('Jobs', name)) do
    if not free[jid] then
      rest[#rest + 1] = jid
    end
  end
  return rest
end

-- ---- patterns

-- Show the names that stand for patterns of queues.
function qless_throttles.identifiers_get()
  local shown, names, pairs_ = {default = ALL}, {'default'}, {}
  for _, pair in ipairs(ask('queueIdentifierPatterns.getAll', 'metadata_get', {IDENTIFIERS})) do
    if not shown[pair[1]] then
      names[#names + 1] = pair[1]
    end
    shown[pair[1]] = pair[2]
  end
  table.sort(names, config.before)
  for _, name in ipairs(names) do
    pairs_[#pairs_ + 1] = name
    pairs_[#pairs_ + 1] = qless_texts.quote(shown[name])
  end
  return qless_texts.record(pairs_)
end

-- Replace all metadata of a klass.
local function replace(command, klass, pairs_)
  for _, pair in ipairs(ask(command, 'metadata_get', {klass})) do
    ask(command, 'metadata_unset', {klass, pair[1]})
  end
  for _, pair in ipairs(pairs_) do
    ask(command, 'metadata_set', {klass, pair[1], pair[2]})
  end
end

-- Replace the names that stand for patterns of queues; a name without patterns is left out.
function qless_throttles.identifiers_set(...)
  local words, given = {...}, {}
  if #words % 2 == 1 then
    qless_arguments.fail('Odd number of identifier patterns: ', #words)
  end
  for i = 1, #words, 2 do
    if (qless_texts.strings(words[i + 1]) or {})[1] then
      given[#given + 1] = {words[i], words[i + 1]}
    end
  end
  replace('queueIdentifierPatterns.setAll', IDENTIFIERS, given)
end

-- List the patterns that order queues.
function qless_throttles.priorities_get()
  local texts = {}
  for i, pair in ipairs(ask('queuePriorityPatterns.getAll', 'metadata_get', {PRIORITIES})) do
    texts[i] = pair[2]
  end
  return qless_texts.quoted(texts[1] and texts or {EVEN})
end

-- Replace the patterns that order queues; the default one comes last unless it is given.
function qless_throttles.priorities_set(...)
  local given, pairs_, even = {...}, {}, false
  for _, text in ipairs(given) do
    even = even or string.find(text, '"pattern"%s*:%s*%[%s*"default"%s*%]') ~= nil
  end
  if given[1] and not even then
    given[#given + 1] = EVEN
  end
  for i, text in ipairs(given) do
    pairs_[i] = {string.format('%03d', i - 1), text}
  end
  replace('queuePriorityPatterns.setAll', PRIORITIES, pairs_)
end

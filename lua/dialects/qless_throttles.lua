-- Commands of reqless for throttles and queue patterns, twin of qmodel/dialects/qless/throttles.py.
--
-- A throttle of reqless is one of ours with a concurrency, which its jobs name. What the engine does not keep, a throttle's
-- maximum when it has none and its end, is kept as metadata; so are the patterns, which only bindings read.

local qless_throttles = {}

local THROTTLES = 'qless:throttles' -- the maximum and the end (milliseconds; 0: none) of each throttle
local LONGEST_MS = 316224000000
local UNLIMITED = 10 -- how many parked jobs follow one job out of a throttle that has no limit any more
local IDENTIFIERS, PRIORITIES = 'qless:identifiers', 'qless:priorities'
local ALL, EVEN = '["*"]', '{"fairly": false, "pattern": ["default"]}'

qless_throttles.OWN = 'ql:q:' -- the names of the queues' own throttles begin so
local OWN = qless_throttles.OWN
local STARRED = 'ql:t:' -- the engine's names of throttles with a `*` begin so: there, a `*` makes a family

local need = qless_arguments.need

local function ask(...)
  return qless_session.ask(...)
end

-- ---- names

local function begins(name, with)
  return string.sub(name, 1, #with) == with
end

-- The engine's name of a throttle, which has no blanks: those of a queue's name are escaped, and so is a `*` of any name.
function qless_throttles.ours(tid)
  if not begins(tid, OWN) then
    if not string.find(tid, '*', 1, true) and not begins(tid, STARRED) then
      return tid
    end
    tid = STARRED .. tid
  end
  local name = string.gsub(tid, '[^!-$&-)+-~]', function(byte)
    return string.format('%%%02X', string.byte(byte))
  end)
  for _, ending in ipairs(arguments.reserved) do
    if string.sub(name, -#ending) == ending then
      return (string.gsub(name, '%-([^-]*)$', '%%2D%1'))
    end
  end
  return name
end
local ours = qless_throttles.ours

-- reqless's name of a throttle.
function qless_throttles.theirs(name)
  if begins(name, STARRED) then
    name = string.sub(name, #STARRED + 1)
  elseif not begins(name, OWN) then
    return name
  end
  return (string.gsub(name, '%%([0-9A-F][0-9A-F])', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

-- The throttles that a put gives a job: those given, without that of the queue in which it was before, and that of its
-- queue, unless the queue's name is too long for one.
function qless_throttles.named(given, queue, before)
  local tids = {}
  for _, tid in ipairs(given) do
    if not before or tid ~= OWN .. before then
      tids[#tids + 1] = tid
    end
  end
  tids[#tids + 1] = OWN .. queue
  return qless_throttles.kept(tids)
end

-- The names of throttles, without repetitions, and without queues whose names are too long for one.
function qless_throttles.kept(tids)
  local names, met = {}, {}
  for _, tid in ipairs(tids) do
    local name = ours(tid)
    if not met[name] and (string.sub(name, 1, #OWN) ~= OWN or #name <= catalogue.id.most) then
      met[name] = true
      names[#names + 1] = name
    end
  end
  return names
end

-- ---- limits

-- Read a note of a maximum and an end; nil if it is another text.
local function read(note)
  local maximum, ends_at = string.match(note, '^(%d+) (%d+)$')
  if not maximum or #maximum > 14 or #ends_at > 14 then
    return nil
  end
  return tonumber(maximum), tonumber(ends_at)
end

-- The maximum and the end of a throttle; nil if it was not set, or has ended.
local function kept_of(tid)
  qless_session.seq()
  local maximum, ends_at = read(qless_session.note(THROTTLES, tid) or '')
  if not maximum then
    return nil
  elseif ends_at > 0 and ends_at <= qless_session.now then
    return nil
  end
  return maximum, ends_at
end

-- Set how many jobs of a throttle may run at once, perhaps for some seconds only; 0: any number.
function qless_throttles.throttle_set(tid, maximum, expiration)
  tid = need('throttle.set', 'tid', tid)
  local most = qless_arguments.whole_of('throttle.set', 'max', maximum)
  local seconds = qless_arguments.whole_of('throttle.set', 'expiration', expiration or '0')
  local operation, args = 'throttle_unset', {ours(tid)}
  if most > 0 then
    operation, args = 'throttle_set', {ours(tid), 'concurrency', qless_texts.digits(most)}
  end
  qless_session.check('throttle.set', operation, args)
  local _, before = kept_of(tid)
  local ends_at = seconds > 0 and qless_session.now + math.min(seconds * 1000, LONGEST_MS) or before or 0
  local note = qless_texts.digits(math.max(most, 0)) .. ' ' .. qless_texts.digits(ends_at)
  ask('throttle.set', 'metadata_set', {THROTTLES, tid, note})
  ask('throttle.set', operation, args)
end

-- The seconds until a throttle ends, as Redis gives them.
local function left_of(maximum, ends_at)
  return not maximum and -2 or ends_at == 0 and -1 or math.ceil((ends_at - qless_session.now) / 1000)
end

-- Show a throttle.
function qless_throttles.throttle_get(tid)
  tid = need('throttle.get', 'tid', tid)
  local maximum, ends_at = kept_of(tid)
  local ttl = qless_texts.digits(left_of(maximum, ends_at))
  return qless_texts.record({'id', qless_texts.quote(tid), 'maximum', qless_texts.digits(maximum or 0), 'ttl', ttl})
end

-- Show the seconds until a throttle ends: -1 if it does not, -2 if it is not set.
function qless_throttles.throttle_ttl(tid)
  return left_of(kept_of(need('throttle.ttl', 'tid', tid)))
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
    local maximum, ends_at = read(pair[2])
    if maximum and ends_at > 0 and ends_at <= qless_session.now then
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

-- List the jobs that hold a throttle, by id.
function qless_throttles.throttle_locks(tid)
  local held = qless_session.holders(ours(need('throttle.locks', 'tid', tid)))
  table.sort(held, config.before)
  return qless_texts.quoted(held)
end

-- List the jobs that wait for a throttle, in the order in which they were parked.
function qless_throttles.throttle_pending(tid)
  return qless_texts.quoted(qless_session.parked_at(ours(need('throttle.pending', 'tid', tid))))
end

-- Let jobs that hold a throttle count in it no longer; let those that wait for it go on.
function qless_throttles.throttle_release(tid, ...)
  local name, jids = ours(need('throttle.release', 'tid', tid)), {...}
  for _, jid in ipairs(jids) do
    qless_session.check('throttle.release', 'throttle_unset', {name, 'jid', jid})
  end
  for _, jid in ipairs(jids) do
    local followers = qless_throttles.plan({jid}, {name})
    for _, parked_jid in ipairs(qless_session.parked_at(name)) do
      if parked_jid == jid then
        followers[#followers + 1] = jid
      end
    end
    ask('throttle.release', 'throttle_unset', {name, 'jid', jid})
    qless_throttles.admit(followers, {})
  end
end

-- ---- parking, and admitting

-- Whether a throttle has room for one more job, whoever was admitted.
function qless_throttles.is_open(name)
  local maximum = kept_of(qless_throttles.theirs(name))
  return not maximum or maximum <= 0 or qless_session.holding(name) < maximum
end

-- Park a job that was put and is ready, if one of its throttles is closed.
function qless_throttles.park(jid)
  local job = qless_session.stored(jid)
  if not job or job.state ~= 'waiting' then
    return
  end
  for _, name in ipairs(qless_session.named(jid)) do
    if not qless_throttles.is_open(name) then
      qless_throttles.end_throttles()
      ask('Put', 'delay', {jid, '0', 'qless', '1'})
      return
    end
  end
end

-- The throttles that a job holds, or at which it is parked: those that a put of it leaves.
function qless_throttles.left(jid)
  local gate, found = qless_session.gate(jid), {}
  if gate then
    return {gate}
  end
  for _, name in ipairs(qless_session.named(jid)) do
    if qless_session.holds(jid, name) then
      found[#found + 1] = name
    end
  end
  return found
end

local function remove(list, one)
  for i, other in ipairs(list) do
    if other == one then
      table.remove(list, i)
      return
    end
  end
end

-- The throttles of jobs that leave them, or `only` some; and how many jobs wait at each and hold it.
local function leaving(jids, only, ended)
  local order, names, waiting, holding = {}, {}, {}, {}
  for _, jid in ipairs(jids) do
    if not names[jid] then
      names[jid] = only or qless_session.named(jid)
      order[#order + 1] = jid
      for _, name in ipairs(names[jid]) do
        if not waiting[name] then
          waiting[name], holding[name] = qless_session.parked_at(name), qless_session.holding(name)
        end
        holding[name] = holding[name] + (ended and 1 or 0)
      end
    end
  end
  return order, names, waiting, holding
end

-- How many parked jobs a throttle admits while so many hold it.
local function room_of(name, holding)
  local maximum = kept_of(qless_throttles.theirs(name))
  return maximum and maximum > 0 and maximum - holding or UNLIMITED
end

-- The parked jobs that follow when jobs leave their throttles, one after the other, or `only` some throttles. `ended`: the
-- jobs, which held them, have left already.
function qless_throttles.plan(jids, only, ended)
  local order, names, waiting, holding = leaving(jids, only, ended)
  local followers, found = {}, {}
  for _, jid in ipairs(order) do
    for _, name in ipairs(names[jid]) do
      if ended or qless_session.holds(jid, name) then
        holding[name] = holding[name] - 1
      else
        remove(waiting[name], jid)
      end
      local room = room_of(name, holding[name])
      while room > 0 and waiting[name][1] do
        followers[#followers + 1] = table.remove(waiting[name], 1)
        room = room - 1
      end
    end
  end
  for _, jid in ipairs(followers) do
    if not names[jid] then
      found[#found + 1] = jid
    end
  end
  return found
end

-- Admit parked jobs. Among them and the jobs that the same call has made `ready`, the later names come first.
function qless_throttles.admit(followers, ready)
  local both, met = {}, {}
  for _, list in ipairs({followers, ready}) do
    for _, jid in ipairs(list) do
      if not met[jid] then
        met[jid] = true
        both[#both + 1] = jid
      end
    end
  end
  if not followers[1] and #both < 2 then
    return
  end
  table.sort(both, function(one, other)
    return config.before(other, one)
  end)
  for _, jid in ipairs(both) do
    local args = {jid, '0'}
    if qless_session.gate(jid) then
      qless_arguments.add(args, 'qless', '1')
    end
    ask('Delay', 'delay', args)
  end
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
  local met, count = {}, 0
  for _, pair in ipairs(pairs_) do
    qless_session.check(command, 'metadata_set', {klass, pair[1], pair[2]})
    met[pair[1]], count = true, count + (met[pair[1]] and 0 or 1)
  end
  qless_session.check_room(command, klass, count)
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

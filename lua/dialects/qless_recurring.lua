-- Commands of the qless dialect on recurring jobs, twin of qmodel/dialects/qless/recurring.py.

local qless_recurring = {}

local LONGEST_S = 316224000
local GONE = {SCHEDULE_NOT_FOUND = 'Job {0} does not exist'}

local need, add, add_list = qless_arguments.need, qless_arguments.add, qless_arguments.add_list

local function fail(...)
  qless_arguments.fail(...)
end

local function need_jid(jid)
  return jid or fail('Recurring(): no jid provided')
end

local function interval_of(text)
  local found = qless_texts.number(text)
  if not found then
    fail('Recur(): Arg "interval" not a number: ', qless_texts.shown(text))
  elseif found < 0.001 or found > LONGEST_S then
    fail('Recur(): Arg "interval" must be greater than 0')
  end
  return qless_texts.milliseconds(found)
end

local function offset_of(text)
  local found = qless_texts.number(text)
  if not found or found > LONGEST_S then
    fail('Recur(): Arg "offset" not a number: ', qless_texts.shown(text))
  end
  return found > 0 and qless_texts.milliseconds(found) or 0
end

local function whole_of(name, text)
  return qless_arguments.whole_of('Recur', name, text)
end

local function add_throttles(args, given)
  if qless_session.reqless then
    local tids = qless_arguments.strings_of('Recur', 'throttles', given.throttles or '[]')
    add_list(args, 'throttles', qless_throttles.named(tids, args[1], nil))
  end
end

-- Create a recurring job, or replace everything except the number of its last run.
function qless_recurring.recur(queue, jid, klass, data, spec, interval, offset, ...)
  queue, jid = qless_arguments.need_queue(queue), need('RecurringJob On', 'jid', jid)
  klass, spec = need('RecurringJob On', 'klass', klass), need('RecurringJob On', 'spec', spec)
  if not qless_texts.is_json(data) then
    fail('RecurringJob On(): Arg "data" not JSON: ', qless_texts.shown(data))
  elseif spec ~= 'interval' then
    fail('Recur(): schedule type "', qless_texts.shown(spec), '" unknown')
  end
  local args = {queue, jid, qless_texts.stored_klass(klass), data, qless_texts.digits(interval_of(interval))}
  local offset_ms = offset_of(offset)
  local begins = math.floor((qless_session.now + offset_ms) / 1000) * 1000 -- due times are whole seconds in qless
  add(args, 'offset_ms', qless_texts.digits(offset_ms))
  local given = qless_arguments.options_of('Recur', {...})
  local names = qless_arguments.strings_of('Recur', 'tags', given.tags or '[]')
  add(args, 'priority', qless_texts.digits(qless_session.sign * whole_of('priority', given.priority or '0')))
  add(args, 'retries', qless_texts.digits(whole_of('retries', given.retries or '0')))
  local backlog = whole_of('backlog', given.backlog or '0')
  add_list(args, 'tags', names)
  add(args, 'backlog', qless_texts.digits(backlog))
  add(args, 'restart', '1')
  add_throttles(args, given)

  if not qless_session.is_listed(queue) then -- it is listed since now, not since the second's begin
    qless_session.ask('Recur', 'recur', {unpack(args)})
  end
  local reply = qless_session.ask_at(math.max(begins - offset_ms, 0), 'Recur', 'recur', args)
  qless_session.remember(queue)
  return reply
end

-- Show a recurring job, or nothing.
function qless_recurring.recur_get(jid)
  local found = qless_session.ask('Recur', 'recur_get', {need_jid(jid)})
  return found and qless_shapes.schedule(found)
end

-- Delete a recurring job; its runs stay.
function qless_recurring.unrecur(jid)
  qless_session.ask('Recur', 'unrecur', {need_jid(jid)})
  return 1
end

local ORDER = {'queue', 'klass', 'data', 'interval_ms', 'priority', 'retries', 'backlog'}
local TEXTS = {data = true, klass = true, queue = true}

local function change(changes, name, value)
  if name == 'interval' then
    changes.interval_ms = qless_texts.digits(interval_of(value))
  elseif name == 'priority' then
    changes.priority = qless_texts.digits(qless_session.sign * whole_of(name, value))
  elseif name == 'retries' or name == 'backlog' then
    changes[name] = qless_texts.digits(whole_of(name, value))
  elseif name == 'data' and not qless_texts.is_json(value) then
    fail('Recur(): Arg "data" is not JSON-encoded: ', qless_texts.shown(value))
  elseif name == 'throttles' and qless_session.reqless then
    changes.throttles = qless_arguments.strings_of('Recur', 'throttles', value)
    for i, tid in ipairs(changes.throttles) do
      changes.throttles[i] = qless_throttles.ours(tid)
    end
  elseif not TEXTS[name] then
    fail('Recur(): Unrecognized option "', qless_texts.shown(name), '"')
  else
    changes[name] = name == 'klass' and qless_texts.stored_klass(value) or value
  end
end

-- The throttles of a recurring job in another queue: that of the new queue comes in the place of that of the old.
local function moved(jid, changes)
  local before, tids = qless_session.ask('Recur', 'recur_get', {jid}), {}
  for i, name in ipairs(changes.throttles or before and before[26] or {}) do
    tids[i] = qless_throttles.theirs(name)
  end
  return qless_throttles.named(tids, changes.queue, before and before[2] or '')
end

-- Change properties of a recurring job, all or none.
function qless_recurring.recur_update(jid, ...)
  local given, changes, args, renamed = {...}, {}, {need_jid(jid)}, nil
  for i = 1, #given, 2 do
    renamed = given[i] == 'queue' and given[i + 1] or renamed
    if given[i + 1] == nil then
      fail('Recur(): No value provided for ', qless_texts.shown(given[i]))
    end
    change(changes, given[i], given[i + 1])
    if qless_session.reqless and given[i] == 'queue' then
      changes.throttles = moved(args[1], changes)
    end
  end
  for _, name in ipairs(ORDER) do
    if changes[name] then
      add(args, name, changes[name])
    end
  end
  if changes.throttles then
    add_list(args, 'throttles', changes.throttles)
  end

  qless_session.ask('Recur', 'recur_update', args)
  if renamed then
    qless_session.remember(renamed)
  end
  return 1
end

-- Add tags to a recurring job, for future runs.
function qless_recurring.recur_tag(jid, ...)
  jid = need_jid(jid)
  local names = {...}
  need('Tag', 'tag', names[1])
  return qless_texts.quoted(qless_session.ask('Tag', 'recur_tag', add_list({jid}, 'tags', names), GONE))
end

-- Remove tags from a recurring job, for future runs.
function qless_recurring.recur_untag(jid, ...)
  jid = need_jid(jid)
  local names = {...}
  need('Untag', 'tag', names[1])
  return qless_texts.quoted(qless_session.ask('Untag', 'recur_untag', add_list({jid}, 'tags', names), GONE))
end

-- Commands of the qless dialect on jobs, twin of qmodel/dialects/qless/jobs.py.

local qless_jobs = {}

local need, add, add_list = qless_arguments.need, qless_arguments.add, qless_arguments.add_list

local function ask(...)
  return qless_session.ask(...)
end

-- ---- putting

-- The dependencies that exist; qless skips the others, which may be complete and deleted. The job itself stays in the
-- list, so that the engine refuses it.
function qless_jobs.known(command, jid, others)
  if #others == 0 then
    return others
  end
  local there, found = {[jid] = true}, {}
  for _, view in ipairs(ask(command, 'multiget', add_list({}, 'jids', others))) do
    there[view[1]] = true
  end
  for _, other in ipairs(others) do
    if there[other] then
      found[#found + 1] = other
    end
  end
  return found
end

-- The parked jobs that follow when jobs leave their throttles; none in qless.
local function plan(jids, only)
  return qless_session.reqless and qless_throttles.plan(jids, only) or {}
end

local function priority_of(text)
  return qless_texts.whole(text) or qless_arguments.fail('Put(): Arg "priority" not a number', qless_texts.shown(text))
end

-- The options of a put, as the wire writes them; and the tags given.
local function add_options(args, jid, delay_ms, given)
  local retries = given.retries and qless_arguments.whole_of('Put', 'retries', given.retries)
  local names = given.tags and qless_arguments.strings_of('Put', 'tags', given.tags)
  local priority = given.priority and qless_session.sign * priority_of(given.priority)
  local depends = qless_arguments.strings_of('Put', 'depends', given.depends or '[]')
  local asked = given.depends and (depends[1] or qless_session.document)
  depends = asked and qless_jobs.known('Put', jid, depends)
  if priority then
    add(args, 'priority', qless_texts.digits(priority))
  end
  add(args, 'delay_ms', qless_texts.digits(delay_ms))
  if retries then
    add(args, 'retries', qless_texts.digits(retries))
  end
  if names then
    add_list(args, 'tags', names)
  end
  if depends then
    add_list(args, 'depends', depends)
  end
  if qless_session.reqless then
    local tids = qless_arguments.strings_of('Put', 'throttles', given.throttles or '[]')
    local before_job = qless_session.stored(jid)
    local named = qless_throttles.named(tids, args[1], before_job and before_job.queue)
    if named[1] then
      add_list(args, 'throttles', named)
    end
  end
  return args, names
end

-- The tags of a job that a put sets anew: all, if it had any of them.
local function tags_again(jid, names)
  local before_job = qless_session.stored(jid)
  local kept, had = before_job and tags.of(before_job) or {}, {}
  for _, tag in ipairs(kept) do
    had[tag] = true
  end
  local any = not names and kept[1]
  for _, tag in ipairs(names or {}) do
    any = any or had[tag]
  end
  return any and (names or kept)
end

-- Put a job into a queue, or move it there.
function qless_jobs.put(me, queue, jid, klass, data, delay, ...)
  queue = qless_arguments.need_queue(queue)
  jid, klass = need('Put', 'jid', jid), need('Put', 'klass', klass)
  data = qless_arguments.need_data('Put', data)
  local delay_ms = qless_arguments.delay_of('Put', delay)
  local given = qless_arguments.options_of('Put', {...})
  local args, names = add_options({queue, jid, qless_texts.stored_klass(klass), data}, jid, delay_ms, given)

  local followers = plan({jid}, qless_session.reqless and qless_throttles.left(jid))
  local tagged = tags_again(jid, names)
  local seq = qless_session.seq()
  ask('Put', 'put', args)
  if tagged then
    ask('Put', 'tag_remove', add_list({jid}, 'tags', tagged))
    ask('Put', 'tag_add', add_list({jid}, 'tags', tagged))
  end
  qless_throttles.admit(followers, qless_session.ready_of({jid}))
  if qless_session.reqless then
    qless_throttles.park(jid)
  end
  qless_session.remember(queue)
  qless_session.log({'jid', jid, 'event', 'put', 'queue', queue})
  for _, event in ipairs(qless_session.events(seq)) do
    if event[2] == 'lock_lost' and event[5] ~= me then
      qless_session.lost(jid, event[5])
    end
  end
  qless_session.tracked('put', jid)
  return jid
end

-- Put a job that exists.
function qless_jobs.requeue(me, queue, jid, ...)
  jid = qless_arguments.need_jid(jid)
  qless_jobs.find('Requeue', jid)
  return qless_jobs.put(me, queue, jid, ...)
end

-- ---- holding

-- Name a job in an error; reqless mostly does not give its id.
local function name_of(command, jid)
  return qless_session.reqless and command ~= 'Requeue' and 'Job' or 'Job ' .. jid
end

-- A job's view, or refuse.
function qless_jobs.find(command, jid)
  return ask(command, 'get', {jid})
    or qless_session.fail(command .. '(): ' .. name_of(command, jid) .. ' does not exist', true)
end

-- A job that a worker holds, or refuse. qless has no tokens, so the worker's present lease is meant.
function qless_jobs.held(command, jid, worker, not_running, other)
  local view = qless_jobs.find(command, jid)
  local job, state, name = records.get(jid), qless_session.state(view), name_of(command, jid)
  if state ~= 'running' then
    qless_session.fail(table.concat({command, '(): ', name, ' ', not_running, ': ', state}), true)
  elseif job.worker ~= worker then
    qless_session.fail(table.concat({command, '(): ', name, ' ', other, ': ', job.worker}), true)
  end
  return job, view
end

-- Refuse when a job runs in another queue.
function qless_jobs.in_queue(command, job, jid, queue)
  if job.queue ~= queue then
    qless_session.fail(table.concat({command, '(): ', name_of(command, jid), ' running in another queue: ', job.queue}), true)
  end
end

local NOTHING = 'qless:nothing' -- a queue without jobs: a pop of it is a sign of life of the worker, and nothing else

-- Record that a worker was seen now.
function qless_jobs.see(command, worker)
  ask(command, 'pop', {NOTHING, worker, 'qless', '1', 'tries', '0'})
end

-- Renew a worker's lease from now; reply its end in whole seconds.
function qless_jobs.heartbeat(jid, worker, data)
  jid = qless_arguments.need_jid(jid)
  worker = need('Heatbeat', 'worker', worker) -- so it stands in qless
  if data then
    qless_arguments.need_data('Heartbeat', data)
  end
  local job = qless_jobs.held('Heartbeat', jid, worker, 'not currently running', 'given out to another worker')

  local args = {jid, job.token .. ''}
  if data then
    add(args, 'data', data)
  end
  local expires_at = ask('Heartbeat', 'heartbeat', args)[1]
  qless_jobs.see('Heartbeat', worker)
  return math.floor(expires_at / 1000)
end

-- Complete a job, or send it on to its next queue; reply its state.
function qless_jobs.complete(jid, worker, queue, data, ...)
  jid = qless_arguments.need_jid(jid)
  worker, queue = need('Complete', 'worker', worker), need('Complete', 'queue', queue)
  data = qless_arguments.need_data('Complete', data)
  local given = qless_arguments.options_of('Complete', {...})
  local delay_ms = given.delay and qless_arguments.delay_of('Complete', given.delay) or 0
  local depends = given.depends and qless_arguments.strings_of('Complete', 'depends', given.depends) or {}
  for _, name in ipairs({'delay', 'depends'}) do
    if not given.next and given[name] then
      qless_arguments.fail('Complete(): "', name, '" cannot be used without a "next".')
    end
  end
  local not_running, other = 'is not currently running', 'has been handed out to another worker'
  local job, view = qless_jobs.held('Complete', jid, worker, not_running, other)
  qless_jobs.in_queue('Complete', job, jid, queue)
  local args = {jid, job.token .. '', 'data', data}
  depends = qless_jobs.known('Complete', jid, depends)
  return qless_jobs.finish(jid, queue, given.next, delay_ms, depends, args, view[7] or {})
end

-- Complete a job after its lease was checked.
function qless_jobs.finish(jid, queue, following, delay_ms, depends, args, dependents)
  if following then
    add(args, 'next', following)
    add(args, 'delay_ms', qless_texts.digits(delay_ms))
    add_list(args, 'depends', depends)
  end
  local followers = plan({jid})
  local reply = ask('Complete', 'complete', args)
  qless_throttles.admit(followers, qless_session.ready_of({jid, unpack(following and {} or dependents)}))
  qless_session.tracked('completed', jid)
  if following then
    qless_session.remember(following)
    qless_session.log({'jid', jid, 'to', following, 'event', 'advanced', 'queue', queue})
  else
    qless_session.log({'jid', jid, 'event', 'completed', 'queue', queue})
  end
  return reply
end

-- Fail a job into a group; reply its id.
function qless_jobs.fail(jid, worker, group, message, data)
  jid = qless_arguments.need_jid(jid)
  worker = need('Fail', 'worker', worker)
  group, message = need('Fail', 'group', group), need('Fail', 'message', message)
  if data then
    qless_arguments.need_data('Fail', data)
  end
  local view = ask('Fail', 'get', {jid})
  local now = view and qless_session.state(view)
  local name = name_of('Fail', jid)
  if now ~= 'running' then -- no blank stands there in qless either
    local head = 'Fail(): ' .. name .. (qless_session.reqless and ' ' or '')
    qless_session.fail(head .. (now and 'not currently running: ' .. now or 'does not exist'), true)
  end
  local job = records.get(jid)
  if job.worker ~= worker then
    qless_session.fail('Fail(): ' .. name .. ' running with another worker: ' .. job.worker, true)
  end

  local args = {jid, job.token .. '', group, message, 'qless', '1'}
  if data then
    add(args, 'data', data)
  end
  local followers = plan({jid})
  ask('Fail', 'fail', args)
  qless_throttles.admit(followers, {})
  qless_jobs.tell_failed(jid, worker, group, message)
  qless_session.tracked('failed', jid)
  return jid
end

-- Tell the log that a job failed.
function qless_jobs.tell_failed(jid, worker, group, message)
  qless_session.log({'message', message, 'jid', jid, 'group', group, 'event', 'failed', 'worker', worker})
end

-- Give a job back to be tried again; reply the retries that remain, or -1 if none remained and it failed.
function qless_jobs.retry(jid, queue, worker, delay, group, message)
  jid = qless_arguments.need_jid(jid)
  queue, worker = need('Retry', 'queue', queue), need('Retry', 'worker', worker)
  local delay_ms = qless_arguments.delay_of('Retry', delay == nil and '0' or delay)
  local not_running, other = 'is not currently running', 'has been given to another worker'
  local job = qless_jobs.held('Retry', jid, worker, not_running, other)
  qless_jobs.in_queue('Retry', job, jid, queue)

  local args = {jid, job.token .. '', 'delay_ms', qless_texts.digits(delay_ms)}
  if group and message then -- needed together
    add(args, 'group', group)
  end
  add(args, 'message', group and message or qless_shapes.exhausted(job.queue))
  add(args, 'qless', '1')
  local followers = plan({jid})
  local remaining = ask('Retry', 'retry', args)
  qless_throttles.admit(followers, qless_session.ready_of({jid}))
  if tonumber(remaining) < 0 and not qless_session.reqless then
    qless_session.tracked('failed', jid)
  end
  return remaining
end

-- Take jobs from their workers at once, all or none.
function qless_jobs.timeout(...)
  local jids = {...}
  if #jids > 0 then
    local seq = qless_session.seq()
    local followers = plan(jids)
    local args, sentences = add_list({}, 'jids', jids), {WRONG_STATE = 'Job {0} not running'}
    if qless_session.reqless then
      add(args, 'qless', '1')
      sentences.JOB_NOT_FOUND = sentences.WRONG_STATE
    end
    ask('Timeout', 'timeout', args, sentences)
    qless_throttles.admit(followers, {})
    for _, event in ipairs(qless_session.events(seq)) do
      if event[2] == 'lock_lost' then
        qless_session.lost(event[3], event[5])
      end
    end
  end
end

-- ---- removing

local function tell_canceled(jid, owner, queue)
  local told = qless_texts.facts({'jid', jid, 'queue', queue, 'event', 'canceled', 'worker', owner})
  qless_session.say('log', told)
  if owner ~= '' then
    qless_session.say('w:' .. owner, told)
  end
  qless_session.tracked('canceled', jid)
end

-- Delete jobs that are not complete, all or none; reply the ids given.
function qless_jobs.cancel(...)
  local jids = {...}
  if #jids > 0 then
    local owned, leaving = {}, {}
    for _, jid in ipairs(jids) do
      local job = qless_session.stored(jid)
      if job and job.state ~= 'complete' then
        owned[jid] = {job.worker, job.queue}
        leaving[#leaving + 1] = jid
      end
    end
    local followers = plan(leaving)
    ask('Cancel', 'cancel', add_list({}, 'jids', jids))
    qless_throttles.admit(followers, {})
    for _, jid in ipairs(jids) do
      if owned[jid] then
        tell_canceled(jid, owned[jid][1], owned[jid][2])
        owned[jid] = nil
      elseif not qless_session.stored(jid) then
        local event = {'jid', qless_texts.quote(jid), 'queue', 'false', 'event', '"canceled"', 'worker', 'false'}
        qless_session.say('log', qless_texts.record(event))
        qless_session.tracked('canceled', jid)
      end
    end
  end
  return jids
end

-- ---- changing

-- Change a job's priority; reply it.
function qless_jobs.priority(jid, level)
  jid = qless_arguments.need_jid(jid)
  local found = qless_texts.whole(level)
  if not found then
    qless_arguments.fail('Priority(): Arg "priority" missing or not a number: ', qless_texts.shown(level))
  end

  if qless_session.reqless and not qless_session.stored(jid) then
    qless_session.fail('Queue(): no queue name provided', true)
  end
  ask('Priority', 'priority', {jid, qless_texts.digits(qless_session.sign * found), 'first', '1'}) -- so it is in qless
  return found
end

-- Change the dependencies of a job that waits for others.
function qless_jobs.depends(jid, command, ...)
  jid = qless_arguments.need_jid(jid)
  need('Depends', 'command', command)
  local view, jids = ask('Depends', 'get', {jid}), {...}
  if not view or view[2] ~= 'depends' then
    local found = view and qless_session.state(view) or 'false'
    qless_session.fail('Depends(): Job ' .. jid .. ' not in the depends state: ' .. found, true)
  elseif command ~= 'on' and command ~= 'off' then
    qless_arguments.fail('Depends(): Argument "command" must be "on" or "off"')
  end

  if command == 'on' then
    local others = qless_jobs.known('Depends', jid, jids)
    if #others > 0 then
      ask('Depends', 'depends_on', add_list({jid}, 'dependencies', others))
    end
  elseif jids[1] == 'all' then
    ask('Depends', 'depends_off', {jid, 'all', '1'})
  else
    ask('Depends', 'depends_off', add_list({jid}, 'dependencies', jids))
  end
  return 1
end

-- Add a line to a job's history, with the names and values of a JSON object.
function qless_jobs.log(jid, message, data)
  if not jid or not message then
    qless_arguments.fail("Log(): Argument '", jid and 'message' or 'jid', "' missing")
  end
  if data and not qless_texts.is_object(data) then
    qless_arguments.fail('Log(): Arg "data" not a JSON object: ', qless_texts.shown(data))
  end

  local object = data and string.match(data, '^[ \t\r\n]*(.*)$') -- so the break before it tells where it begins
  ask('Log', 'log', {jid, object and message .. '\n' .. object or message})
end

-- Add and remove a job's tags, or look up jobs by tag, or the tags most used.
function qless_jobs.tag(command, ...)
  local given = {...}
  if command == 'add' or command == 'remove' then
    local args = {need('Tag', 'jid', given[1])}
    need('Tag', 'tag', given[2])
    table.remove(given, 1)
    return qless_texts.quoted(ask('Tag', 'tag_' .. command, add_list(args, 'tags', given)))
  elseif command == 'get' then
    local name = need('Tag', 'tag', given[1])
    local begin, size = qless_arguments.window('Tag', 'offset', 'count', given[2], given[3])
    return qless_jobs.page(qless_arguments.page('Tag', 'tagged', name, begin, size))
  elseif command == 'top' then
    return qless_texts.quoted(qless_jobs.top(given[1], given[2]))
  end
  if command == nil then
    qless_arguments.fail('Tag(): Arg "command" must be "add", "remove", "get" or "top"')
  end
  qless_arguments.fail('Tag(): First argument must be "add", "remove" or "get"')
end

-- A page of the tags most used; of one number the later names come first.
function qless_jobs.top(offset, count)
  local begin, size = qless_arguments.limited(qless_arguments.window('Tag', 'offset', 'count', offset, count))
  local tallies, names = ask('Tag', 'top_tags', {'offset', '0', 'count', '1000'}), {}
  table.sort(tallies, function(a, b)
    return a[2] > b[2] or a[2] == b[2] and config.before(b[1], a[1])
  end)
  for i = begin + 1, math.min(begin + size, #tallies) do
    names[#names + 1] = tallies[i][1]
  end
  return names
end

-- A page of ids and how many there are.
function qless_jobs.page(page)
  return qless_texts.record({'total', page[1], 'jobs', qless_texts.quoted(page[2])})
end

-- Track a job or stop that, or show the tracked jobs.
function qless_jobs.track(action, jid)
  if action == nil then
    local found = ask('Track', 'tracked', {'offset', '0', 'count', '1000'})
    return qless_texts.record({'jobs', qless_shapes.jobs(found[1]), 'expired', qless_texts.quoted(found[2])})
  end
  jid = need('Track', 'jid', jid)
  local verb, changed = string.lower(action), nil
  if verb == 'untrack' and not qless_session.stored(jid) and not tracking.is_tracked(jid) then
    qless_session.fail('Track(): Job does not exist', true)
  end
  if verb == 'track' then
    local again = qless_session.stored(jid) and tracking.is_tracked(jid)
    if again then -- it is tracked since now
      ask('Track', 'untrack', {jid})
    end
    changed = ask('Track', 'track', {jid}, {JOB_NOT_FOUND = 'Job does not exist'})
    changed = again and 0 or changed
  elseif verb == 'untrack' then
    changed = ask('Track', 'untrack', {jid})
  else
    qless_arguments.fail('Track(): Unknown action "', qless_texts.shown(action), '"')
  end
  qless_session.say(verb, jid)
  return changed .. ''
end

-- Commands of the qless dialect on queues and workers, and reads; twin of qmodel/dialects/qless/queues.py.

local qless_queues = {}

local function ask(...)
  return qless_session.ask(...)
end

local function add_names(name, names)
  local args = {}
  for _, one in ipairs(names) do
    args[#args + 1] = name
    args[#args + 1] = one
  end
  return args
end

-- ---- taking

local function count_of(command, text)
  local found = qless_texts.whole(text)
  if not found then
    qless_session.fail(command .. '(): Arg "count" missing or not a number: ' .. qless_texts.shown(text))
  end
  return math.min(found, catalogue.most)
end

local function tell_popped(event)
  local kind, jid = event[2], event[3]
  if kind == 'lock_lost' then
    qless_session.tracked('stalled', jid)
    qless_session.lost(jid, event[5])
  elseif kind == 'failed' then
    qless_session.tracked('failed', jid)
    qless_jobs.tell_failed(jid, event[5], event[7], qless_jobs.exhausted(event[4]))
  elseif kind == 'popped' then
    qless_session.tracked('popped', jid)
  end
end

-- Lease the next jobs of a queue to a worker.
function qless_queues.pop(queue, worker, count)
  queue = qless_arguments.need_queue(queue)
  worker = qless_arguments.need('Pop', 'worker', worker)
  local most = count_of('Pop', count)
  if most < 1 then
    return qless_shapes.granted({})
  end

  local seq = qless_session.seq()
  local reply = qless_shapes.granted(ask('Pop', 'pop', {queue, worker, 'count', qless_texts.digits(most)}))
  for _, event in ipairs(qless_session.events(seq)) do
    tell_popped(event)
  end
  return reply
end

-- Show the jobs that a pop would give next. With three arguments, the second is how many to skip.
function qless_queues.peek(queue, count, limit)
  queue = qless_arguments.need_queue(queue)
  local skip = limit == nil and 0 or math.max(count_of('Peek', count), 0)
  local most = count_of('Peek', limit == nil and count or limit)
  if most < 1 then
    return qless_shapes.granted({})
  end

  local args = {queue, 'count', qless_texts.digits(math.min(skip + most, catalogue.most))}
  local views = {}
  for i, view in ipairs(ask('Peek', 'peek', args)) do
    if i > skip then
      views[#views + 1] = view
    end
  end
  return qless_shapes.granted(views)
end

-- ---- looking

-- Show a job, or nothing.
function qless_queues.get(jid)
  local view = ask('Get', 'get', {qless_arguments.need_jid(jid)})
  return view and qless_shapes.job(view)
end

-- Show several jobs; missing ones are left out.
function qless_queues.multiget(...)
  local jids = {...}
  return qless_shapes.jobs(#jids > 0 and ask('Multiget', 'multiget', add_names('jids', jids)) or {})
end

local LISTS = {
  running = 'running', stalled = 'stalled', scheduled = 'scheduled', depends = 'depending', waiting = 'waiting',
  recurring = 'recurring',
}

-- List the ids of jobs in a state.
function qless_queues.jobs(state, ...)
  local given = {...}
  state = qless_arguments.need('Jobs', 'state', state)
  if state == 'complete' then
    return ask('Jobs', 'completed', qless_arguments.window({}, 'Jobs', 'offset', 'count', given[1], given[2]))[2]
  elseif not LISTS[state] then
    qless_session.fail('Jobs(): Unknown type "' .. qless_texts.shown(state) .. '"')
  end
  local queue = qless_arguments.need('Jobs', 'queue', given[1])
  return ask('Jobs', LISTS[state], qless_arguments.window({queue}, 'Jobs', 'offset', 'count', given[2], given[3]))[2]
end

-- Count the failed jobs by group, or list the jobs of one group.
function qless_queues.failed(group, start, limit)
  if group ~= nil then
    local page = ask('Failed', 'failed', qless_arguments.window({group}, 'Failed', 'start', 'limit', start, limit))
    if not qless_session.document then
      return qless_jobs.page(page)
    end -- the documents reply whole jobs, not ids
    local whole = #page[2] > 0 and ask('Failed', 'multiget', add_names('jids', page[2])) or {}
    return qless_texts.record({'total', page[1], 'jobs', qless_shapes.jobs(whole)})
  end
  local counts = {}
  for _, tally in ipairs(ask('Failed', 'failed_groups', {'offset', '0', 'count', '1000'})) do
    counts[#counts + 1] = tally[1]
    counts[#counts + 1] = qless_texts.digits(tally[2])
  end
  return qless_texts.record(counts)
end

local function each(found, show)
  local shown = {}
  for i, one in ipairs(found) do
    shown[i] = show(one)
  end
  return qless_texts.listed(shown)
end

-- Count the jobs of all queues, or of one.
function qless_queues.queues(queue)
  if queue ~= nil then
    return qless_shapes.queue(ask('Queues', 'queue', {queue}))
  end
  return each(ask('Queues', 'queues', {'offset', '0', 'count', '1000'}), qless_shapes.queue)
end

-- Count the jobs of a queue that do not wait for others.
function qless_queues.length(queue)
  local of = ask('Length', 'queue', {qless_arguments.need_queue(queue)})
  return of[2] + of[3] + of[5] + of[6]
end

-- Show the statistics of a queue on a given day.
function qless_queues.stats(queue, date)
  queue = qless_arguments.need_queue(queue)
  local at = qless_texts.number(date)
  if not at or at < 0 or at >= 1e11 then
    qless_session.fail('Stats(): Arg "date" missing or not a number: ' .. qless_texts.shown(date))
  end
  local moment = qless_texts.digits(qless_texts.milliseconds(at))
  return qless_shapes.stats(ask('Stats', 'stats', {queue, 'at', moment}))
end

-- Count the jobs of all workers, or list the jobs of one worker.
function qless_queues.workers(worker)
  if worker ~= nil then
    local held = ask('Workers', 'worker', {worker})
    return qless_texts.record({'jobs', qless_texts.quoted(held[1]), 'stalled', qless_texts.quoted(held[2])})
  end
  return each(ask('Workers', 'workers', {'offset', '0', 'count', '1000'}), qless_shapes.worker)
end

-- ---- changing

-- Move the longest failed jobs of a group to a queue; reply how many, at most 1000 at a time.
function qless_queues.unfail(queue, group, count)
  queue = qless_arguments.need_queue(queue)
  group = qless_arguments.need('Unfail', 'group', group)
  local most = count == nil and 25 or math.min(qless_arguments.whole_of('Unfail', 'count', count), catalogue.most)
  if most < 1 then
    return 0
  end

  return ask('Unfail', 'retry_many', {'group', group, 'to', queue, 'count', qless_texts.digits(most)})[1]
end

-- Stop handing out jobs of queues.
function qless_queues.pause(...)
  local names = {...}
  qless_arguments.need('Pause', 'queue', names[1])
  ask('Pause', 'pause', add_names('queues', names))
end

-- Hand out jobs of queues again.
function qless_queues.unpause(...)
  local names = {...}
  qless_arguments.need('Unpause', 'queue', names[1])
  ask('Unpause', 'unpause', add_names('queues', names))
end

-- Take empty queues off the list.
function qless_queues.forget(...)
  local names = {...}
  if #names > 0 then
    ask('Queue.forget', 'forget', add_names('queues', names))
  end
end

-- Take workers off the list.
function qless_queues.deregister(...)
  local names = {...}
  if #names > 0 then
    ask('Worker.deregister', 'deregister', add_names('workers', names))
  end
end

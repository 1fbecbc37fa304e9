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
    qless_jobs.tell_failed(jid, event[5], event[7], qless_shapes.message(qless_session.stored(jid), event[4]))
  elseif kind == 'popped' then
    qless_session.tracked('popped', jid)
  end
end

local function tell(seq)
  for _, event in ipairs(qless_session.events(seq)) do
    tell_popped(event)
  end
end

-- How many times a pop takes jobs from the head of a queue, for as many as throttles have kept back.
local function tries_of(queue)
  for _, option in ipairs({queue .. '-max-pop-retry', 'max-pop-retry'}) do
    local found = qless_texts.whole(qless_session.note(qless_settings.CONFIG, option))
    if found then
      return math.min(math.max(found, 1), catalogue.most)
    end
  end
  return 1
end

-- Lease jobs: those that lapsed first. If the throttle of the queue is open then, others follow, in so many tries as
-- `max-pop-retry` says.
local function pop_by_reqless(queue, worker, most)
  qless_throttles.end_throttles()
  if qless_session.is_paused(queue) then
    return qless_shapes.granted({})
  end
  if most < 1 then
    qless_jobs.see('Pop', worker)
    return qless_shapes.granted({})
  end

  local seq, failed = qless_session.seq(), {}
  local views = ask('Pop', 'pop', {queue, worker, 'count', qless_texts.digits(most), 'qless', '1', 'tries', '0'})
  for _, event in ipairs(qless_session.events(seq)) do
    if event[2] == 'failed' then
      failed[#failed + 1] = event[3]
    end
  end
  qless_throttles.admit(qless_throttles.plan(failed, nil, true), {})
  if #views < most and qless_throttles.is_open(qless_throttles.ours(qless_throttles.OWN .. queue)) then
    local left, tries = qless_texts.digits(most - #views), qless_texts.digits(tries_of(queue))
    for _, view in ipairs(ask('Pop', 'pop', {queue, worker, 'count', left, 'qless', '1', 'tries', tries})) do
      views[#views + 1] = view
    end
  end
  local reply = qless_shapes.granted(views)
  tell(seq)
  return reply
end

-- Lease the next jobs of a queue to a worker.
function qless_queues.pop(queue, worker, count)
  queue = qless_arguments.need_queue(queue)
  worker = qless_arguments.need('Pop', 'worker', worker)
  local most = count_of('Pop', count)
  if qless_session.reqless then
    return pop_by_reqless(queue, worker, most)
  end
  if qless_session.is_paused(queue) then
    return qless_shapes.granted({})
  end
  local bound = qless_texts.whole(qless_session.note(qless_settings.CONFIG, queue .. '-max-concurrency'))
  if bound and bound > 0 then
    most = math.min(most, bound - qless_session.running(queue))
  end
  if most < 1 then
    qless_jobs.see('Pop', worker)
    return qless_shapes.granted({})
  end

  local seq = qless_session.seq()
  local args = {queue, worker, 'count', qless_texts.digits(most), 'qless', '1'}
  local reply = qless_shapes.granted(ask('Pop', 'pop', args))
  tell(seq)
  return reply
end

-- Show the jobs that a pop would give next. With three arguments, the second is how many to skip.
function qless_queues.peek(queue, count, limit)
  queue = qless_arguments.need_queue(queue)
  local begins = qless_texts.number(count)
  if qless_session.reqless and not qless_session.early and not (begins and qless_texts.number(limit)) then
    local name, given = begins and 'limit' or 'offset', count
    if begins then
      given = limit
    end
    qless_arguments.fail('Peek(): Arg "', name, '" missing or not a number: ', qless_texts.shown(given))
  end
  local skip = limit == nil and 0 or math.max(count_of('Peek', count), 0)
  local most = count_of('Peek', limit == nil and count or limit)
  if most < 1 then
    return qless_shapes.granted({})
  end

  most = math.min(skip + most, catalogue.most)
  local found = qless_session.leased(queue, true, 0, most)
  local left = most - #found
  if left > 0 then
    if qless_session.fires(queue) then
      ask('Peek', 'fire', {queue, 'count', qless_texts.digits(left), 'qless', '1'})
    end
    qless_session.notice('Peek', queue, left)
    for _, jid in ipairs(qless_session.ready(queue, left)) do
      found[#found + 1] = jid
    end
  end
  found = {unpack(found, skip + 1)}
  return qless_shapes.granted(found[1] and ask('Peek', 'multiget', add_names('jids', found)) or {})
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

local LISTS = {scheduled = 'scheduled', depends = 'depending'}

-- List the ids of jobs in a state.
function qless_queues.jobs(state, ...)
  local given = {...}
  state = qless_arguments.need('Jobs', 'state', state)
  if state == 'complete' then
    local begin, size = qless_arguments.window('Jobs', 'offset', 'count', given[1], given[2])
    return qless_arguments.page('Jobs', 'completed', nil, begin, size)[2]
  end
  local kept_back = state == 'throttled' and qless_session.reqless
  local leased = state == 'running' or state == 'stalled'
  if not LISTS[state] and state ~= 'recurring' and not leased and not kept_back then
    qless_session.fail('Jobs(): Unknown type "' .. qless_texts.shown(state) .. '"')
  end
  local queue = qless_arguments.need('Jobs', 'queue', given[1])
  local begin, size = qless_arguments.window('Jobs', 'offset', 'count', given[2], given[3])
  if leased then
    return qless_session.leased(queue, state == 'stalled', qless_arguments.limited(begin, size))
  elseif state == 'recurring' then
    return qless_session.recurring(queue, qless_arguments.limited(begin, size))
  elseif kept_back then
    local jids = qless_session.parked_in(queue)
    begin, size = qless_arguments.ranged(begin, size, #jids)
    return {unpack(jids, begin + 1, math.min(begin + size, #jids))}
  elseif state == 'scheduled' then
    qless_session.notice('Jobs', queue, catalogue.most)
  end
  return qless_arguments.page('Jobs', LISTS[state], queue, begin, size)[2]
end

-- Count the failed jobs by group, or list the jobs of one group.
function qless_queues.failed(group, start, limit)
  if group ~= nil then
    local begin, size = qless_arguments.window('Failed', 'start', 'limit', start, limit)
    local page = qless_arguments.page('Failed', 'failed', group, begin, size)
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

-- The counts of a queue.
local function counts_of(name)
  return qless_shapes.queue(ask('Queues', 'queue', {name}))
end

-- Count the jobs of all queues, or of one.
function qless_queues.queues(queue)
  if queue ~= nil then
    qless_session.notice('Queues', queue, catalogue.most)
    return counts_of(queue)
  end
  local names, left = qless_session.listed(), catalogue.most
  for _, name in ipairs(names) do
    left = left - (left > 0 and qless_session.notice('Queues', name, left) or 0)
  end
  return each(names, counts_of)
end

-- List the queues.
function qless_queues.names()
  return qless_texts.quoted(qless_session.listed())
end

-- Count the jobs of a queue that do not wait for others; reqless leaves out those that a throttle keeps back.
function qless_queues.length(queue)
  queue = qless_arguments.need_queue(queue)
  local of = ask('Length', 'queue', {queue})
  return of[2] + of[3] + of[5] + of[6] + (qless_session.reqless and 0 or of[11])
end

-- The tag or the worker by which `stats` counts, from what follows the date. Anything else is ignored as surplus, or
-- refused where a document says what a call has.
local function part(given)
  local is_part = (given[1] == 'tag' or given[1] == 'worker') and #given > 1
  local known = is_part and 2 or 0
  if qless_session.document and #given > known then
    qless_session.fail('Stats(): Unexpected argument ' .. given[known + 1])
  end
  return is_part and given[1], is_part and given[2]
end

-- Show the statistics of a queue on a given day; by a tag or a worker, only its waits and runs.
function qless_queues.stats(queue, date, ...)
  queue = qless_arguments.need_queue(queue)
  local by, name = part({...})
  local at = qless_texts.number(date)
  if not at or at >= 1e11 then
    qless_session.fail('Stats(): Arg "date" missing or not a number: ' .. qless_texts.shown(date))
  end
  if at < 0 then -- before 1970 nothing happened
    local nothing = {0, '0', '0', {}}
    return qless_shapes.stats({queue, 0, nothing, nothing, 0, 0, 0}, by)
  end
  local moment = qless_texts.digits(qless_texts.milliseconds(at))
  local asked = by and {queue, 'at', moment, by, name} or {queue, 'at', moment}
  return qless_shapes.stats(ask('Stats', 'stats', asked), by)
end

-- Take workers off the list that are past their age and have no lease; give the others, latest seen first.
local function forget_silent()
  local since, listed, silent = qless_session.now - qless_settings.worker_age(), {}, {}
  for _, one in ipairs(ask('Workers', 'workers', {'offset', '0', 'count', '1000'})) do
    if one[2] <= since and one[3] + one[4] == 0 then
      silent[#silent + 1] = one[1]
    else
      listed[#listed + 1] = one
    end
  end
  if silent[1] then
    ask('Workers', 'deregister', add_names('workers', silent))
  end
  return listed
end

-- A worker's jobs with leases that have not lapsed, and that have; at its end a lease is both. The latest end comes
-- first. Jobs whose holder was told that it lost them are left out.
local function leases(worker)
  local both, held, running, lapsed = ask('Workers', 'worker', {worker}), {}, {}, {}
  for _, jids in ipairs(both) do
    for _, jid in ipairs(jids) do
      local job = records.get(jid)
      if not options.get(job, 'told') then
        held[#held + 1] = {tonumber(job.expires_at), jid}
      end
    end
  end
  table.sort(held, function(a, b)
    return a[1] > b[1] or a[1] == b[1] and config.before(b[2], a[2])
  end)
  for _, one in ipairs(held) do
    if one[1] >= qless_session.now then
      running[#running + 1] = one[2]
    end
    if one[1] <= qless_session.now then
      lapsed[#lapsed + 1] = one[2]
    end
  end
  return running, lapsed
end

-- Count the jobs of all workers, or list the jobs of one worker.
function qless_queues.workers(worker)
  local listed = forget_silent()
  if worker ~= nil then
    local running, lapsed = leases(worker)
    return qless_texts.record({'jobs', qless_texts.quoted(running), 'stalled', qless_texts.quoted(lapsed)})
  end
  return each(listed, function(one)
    local running, lapsed = leases(one[1])
    return qless_shapes.worker(one[1], #running, #lapsed)
  end)
end

-- ---- changing

-- The longest failed jobs of a group, by their ids in reverse.
local function longest_failed(group, most)
  local function page(begin, size)
    return ask('Unfail', 'failed', {group, 'offset', qless_texts.digits(begin), 'count', qless_texts.digits(size)})
  end
  local total = page(0, 1)[1]
  local jids = total > 0 and page(math.max(total - most, 0), most)[2] or {}
  table.sort(jids, function(a, b)
    return config.before(b, a)
  end)
  return jids
end

-- Move the longest failed jobs of a group to a queue; reply how many, at most 1000 at a time.
function qless_queues.unfail(queue, group, count)
  queue = qless_arguments.need_queue(queue)
  group = qless_arguments.need('Unfail', 'group', group)
  local most = count == nil and 25 or math.min(qless_arguments.whole_of('Unfail', 'count', count), catalogue.most)
  if most < 1 and qless_session.reqless then
    qless_session.fail('Unfail(): Arg "count" must be greater than zero')
  end
  if most < 1 then
    return 0
  end

  local jids = longest_failed(group, most)
  if not jids[1] then
    return 0
  end

  local args = add_names('jids', jids) -- later names come first
  for _, word in ipairs({'group', group, 'to', queue}) do
    args[#args + 1] = word
  end
  local moved = qless_session.attempt('retry_many', args)
  if moved[1] ~= 'OK' then -- too large: as many as one call may move
    moved = {'OK', ask('Unfail', 'retry_many', {'group', group, 'to', queue, 'count', qless_texts.digits(most)})}
  end
  qless_session.remember(queue)
  return moved[2][1]
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

-- Take queues off the list; one that has jobs keeps them, and comes back with the next put.
function qless_queues.forget(...)
  local names, met, paused = {}, {}, {}
  for _, name in ipairs({...}) do
    names[#names + 1] = not met[name] and name or nil
    met[name] = true
    paused[name] = ask('Queue.forget', 'queue', {name})[7] == 1
  end
  for _, name in ipairs(names) do
    local gone = paused[name] or qless_session.attempt('forget', {'queues', name})[1] ~= 'OK'
    qless_session.forget(name, gone) -- with jobs it only leaves the list, until the next put
  end
end

-- Take workers off the list.
function qless_queues.deregister(...)
  local names = {...}
  if #names > 0 then
    ask('Worker.deregister', 'deregister', add_names('workers', names))
  end
end

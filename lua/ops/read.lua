-- Reads. They change nothing, and are true at `now`.

local read = {}

-- Explain why a job does not run, or say that it does.
function read.why(now, op)
  return explanation.reasons(now, jobs.find(op.jid))
end

-- Show a job.
function read.get(now, op)
  local job = jobs.get(op.jid)
  return job and jobs.view(now, job)
end

-- Show several jobs.
function read.multiget(now, op)
  local units = 0
  for _, jid in ipairs(op.jids) do
    local job = jobs.get(jid)
    units = units + (job and budget.weight(job) or 0)
  end
  budget.check('multiget', #op.jids, units)
  return jobs.views(now, op.jids)
end

-- Find jobs.
function read.search(now, op)
  local found, cursor = selection.find(now, 'search', op, selection.filter(op, op.state))
  local shown = {}
  for i, job in ipairs(found) do
    shown[i] = jobs.view(now, job)
  end
  return {cursor, shown}
end

-- List the jobs in order, then those that have become due since the last pop.
function read.waiting(now, op)
  local size = queues.size(op.queue, '-work')
  local jids = queues.order(op.queue, op.offset, op.count)
  local skip = math.max(op.offset - size, 0)
  local due, rest = queues.page(op.queue, '-scheduled', '-inf', now, skip, op.count - #jids)
  for _, jid in ipairs(rest) do
    jids[#jids + 1] = jid
  end
  return {size + due, jids}
end

-- List the jobs that are not due yet.
function read.scheduled(now, op)
  return {queues.page(op.queue, '-scheduled', '(' .. now, '+inf', op.offset, op.count)}
end

-- List the jobs that wait for other jobs.
function read.depending(_, op)
  return {queues.page(op.queue, '-depends', '-inf', '+inf', op.offset, op.count)}
end

-- List the ready jobs that are parked.
function read.throttled(_, op)
  return {queues.page(op.queue, '-throttled', '-inf', '+inf', op.offset, op.count)}
end

-- List the jobs under a valid lease.
function read.running(now, op)
  return {queues.page(op.queue, '-locks', '(' .. now, '+inf', op.offset, op.count)}
end

-- List the jobs with a lapsed or ended lease.
function read.stalled(now, op)
  return {queues.page(op.queue, '-locks', '-inf', now, op.offset, op.count)}
end

-- List the complete jobs, latest first.
function read.completed(_, op)
  return {completed.page(op.offset, op.count)}
end

-- Count the jobs of a queue by state, and find its next event.
local function counts(now, name)
  local due = queues.count(name, '-scheduled', now)
  local stalled = queues.count(name, '-locks', now)
  local ready_at = queues.next_at(name, now, config.value('grace-period'))
  local lasting = pauses.lasting(now, name)
  local opens_at = #lasting > 0 and 0 or admission.opens_at(now, name)
  local next_at = throttles.NEVER
  for _, moment in ipairs({ready_at, opens_at, pauses.ends_at(now, name)}) do
    next_at = moment > 0 and math.min(next_at, moment) or next_at
  end
  return {
    name,
    queues.size(name, '-work') + due,
    queues.size(name, '-scheduled') - due,
    queues.size(name, '-depends'),
    queues.size(name, '-locks') - stalled,
    stalled,
    #lasting > 0 and 1 or 0,
    next_at < throttles.NEVER and next_at or 0,
    schedules.size(name),
    schedules.count_due(name, now),
    queues.size(name, '-throttled'),
    lasting,
  }
end

-- Count the jobs of the queues on the list.
function read.queues(now, op)
  local page = {}
  for i, name in ipairs(queues.listed(op.offset, op.count)) do
    page[i] = counts(now, name)
  end
  return page
end

-- Count the jobs of one queue.
function read.queue(now, op)
  return counts(now, op.queue)
end

-- Count the jobs of a queue in any state.
function read.length(_, op)
  return queues.length(op.queue)
end

-- Those of some jobs that are held with a valid lease, and those with a lapsed one.
local function leases(now, held)
  local valid, lapsed = {}, {}
  local expiries = records.expiries(held)
  for i, jid in ipairs(held) do
    local list = expiries[i] > now and valid or lapsed
    list[#list + 1] = jid
  end
  return valid, lapsed
end

-- How many valid and lapsed leases a worker has; beyond the budget, how many at least: one for each grant.
local function held_by(now, name)
  local entries = workers.entries(name)
  local units = budget.of_leases(entries)
  if units > budget.room() then
    return math.floor(entries / 2), 0
  end
  budget.spend(units)
  local valid, lapsed = leases(now, workers.unordered(name))
  return #valid, #lapsed
end

-- List the workers with the number of their leases, as far as the budget goes.
function read.workers(now, op)
  local page = {}
  for i, found in ipairs(workers.listed(now, op.offset, op.count)) do
    page[i] = {found[1], tonumber(found[2]), held_by(now, found[1])}
  end
  return page
end

-- List the jobs that a worker holds.
function read.worker(now, op)
  workers.check_bounded('worker', op.worker)
  return {leases(now, workers.held(op.worker))}
end

-- Show the statistics of a queue on a day.
function read.stats(now, op)
  if op.tag and op.worker then
    refusals.refuse('BAD_ARGUMENT', 'stats', 'worker')
  end

  return stats.view(now, op.queue, op.at or now, op.tag, op.worker)
end

-- Show what became of a queue's jobs, minute by minute.
function read.metrics(now, op)
  return stats.metrics(now, op.queue, op.at or now, op.count)
end

-- List the events after a sequence number; with the epoch of that event, only if it is part of this history.
function read.events(_, op)
  if op.epoch then
    epochs.check(op.after, op.epoch)
  end

  return store.events_after(op.after, op.count)
end

-- Give the sequence and the epoch of the newest event, as text.
function read.newest(_, _)
  return {store.text(store.last()), store.epoch}
end

-- List the entries of the journal after a number; with the epoch of that entry, only if it is part of this history.
function read.journal(_, op)
  if op.epoch then
    journal.check(op.after, op.epoch)
  end

  return journal.after(op.after, op.count)
end

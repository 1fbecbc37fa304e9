-- Deleting jobs and queues.

local remove = {}

local function is_unfinished(job)
  return job and job.state ~= 'complete'
end

-- Whether `cancel` deletes a job.
local function is_meant(job, complete)
  return job and (complete or job.state ~= 'complete')
end

-- The same jobs; or refuse if a job outside the list depends on one of them.
local function closed(named)
  local known = {}
  for _, jid in ipairs(named) do
    known[jid] = true
  end
  for _, jid in ipairs(named) do
    for _, dependent in ipairs(deduplication.dependents(jobs.load(jid))) do
      if not known[dependent] then
        refusals.refuse('HAS_DEPENDENTS', jid, dependent)
      end
    end
  end
  return named
end

-- These jobs and all that depend on them, directly or not, nearest first.
local function with_dependents(named)
  local found, queue, at = {}, {}, 1
  for i, jid in ipairs(named) do
    found[jid] = true
    queue[i] = jid
  end
  while queue[at] do
    for _, dependent in ipairs(deduplication.dependents(jobs.load(queue[at]))) do
      if not found[dependent] then
        if #queue == catalogue.most then
          refusals.refuse('CANCEL_LIMIT', named[1])
        end
        found[dependent] = true
        queue[#queue + 1] = dependent
      end
    end
    at = at + 1
  end
  return queue
end

-- Refuse to end more than 1000 dependencies at once.
local function check_edges(doomed)
  local ended = 0
  for _, jid in ipairs(doomed) do
    local job = jobs.load(jid)
    ended = ended + job.waits
  end
  if ended > catalogue.most then
    refusals.refuse('CANCEL_LIMIT', doomed[1])
  end
end

-- Delete unfinished jobs, or any, with all their dependents or none.
function remove.cancel(now, op)
  local named, met = {}, {}
  for _, jid in ipairs(op.jids) do
    if not met[jid] and is_meant(jobs.get(jid), op.complete) then
      met[jid] = true
      named[#named + 1] = jid
    end
  end
  local doomed = op.cascade and with_dependents(named) or closed(named)
  check_edges(doomed)
  local found, units = {}, 0
  for i, jid in ipairs(doomed) do
    found[i] = jobs.load(jid)
    units = units + concurrency.ending(found[i])
  end
  budget.check('cancel', #found, units)

  for _, job in ipairs(concurrency.parked_first(found)) do
    deletion.delete_any(now, job)
  end
  return doomed
end

-- Refuse if one of these unfinished jobs cannot be canceled.
function remove.check_cancel(doomed)
  closed(doomed)
  check_edges(doomed)
end

-- Cancel jobs of a queue that have not started, and have no dependents and at most 1000 dependencies.
function remove.drain(now, op)
  local canceled = 0
  for _, jid in ipairs(queues.not_begun(op.queue, op.count)) do
    local job = jobs.load(jid)
    local units = concurrency.ending(job)
    if canceled > 0 and not budget.fits(units, 0) then
      break
    end
    if dependencies.is_bounded(job) and not deduplication.has_dependents(job) then
      budget.spend(units - budget.weight(job)) -- the deletion spends the rest
      deletion.delete(now, job)
      canceled = canceled + 1
    end
  end
  return {canceled, queues.length(op.queue)}
end

-- Make a function that cancels a job if it may.
local function canceler(now)
  return function(job)
    if not dependencies.is_bounded(job) or deduplication.has_dependents(job) then
      return false
    end
    deletion.delete(now, job)
    return true
  end
end

-- Make a function that deletes a complete job.
local function retirer(now)
  return function(job)
    store.emit(now, 'retired', job.jid)
    jobs.remove(job)
    return true
  end
end

-- Cancel the matching jobs without dependents.
function remove.cancel_many(now, op)
  local found, cursor = selection.find(now, 'cancel_many', op, selection.filter(op, op.state))
  local unfinished = {}
  for _, job in ipairs(found) do
    if is_unfinished(job) then
      unfinished[#unfinished + 1] = job
    end
  end

  return selection.bulk(op.preview, concurrency.parked_first(unfinished), cursor, canceler(now))
end

-- Delete finished jobs by age.
function remove.clean(now, op)
  local wanted = selection.filter(op, op.state, now - op.older_ms)
  local found, cursor = selection.find(now, 'clean', op, wanted)

  local jids = selection.acted(op.preview, found, op.state == 'complete' and retirer(now) or canceler(now))
  return {#jids, #found - #jids, cursor, jids}
end

-- A job and all that wait for it, nearest first, without those already chosen; or refuse.
local function with_waiting(queue, job, known)
  if known[job.jid] then
    return {}
  end
  local met, more, at = {[job.jid] = true}, {job.jid}, 1
  while more[at] and #more <= catalogue.most do
    for _, dependent in ipairs(deduplication.dependents(jobs.load(more[at]))) do
      local other_job = jobs.load(dependent)
      if other_job.queue ~= queue then
        refusals.refuse('HAS_DEPENDENTS', more[at], dependent)
      end
      if not met[dependent] and not known[dependent] then
        met[dependent] = true
        more[#more + 1] = dependent
      end
    end
    at = at + 1
  end
  return more
end

-- Choose as many of the jobs as one operation deletes, each with all jobs that wait for it; give how many were chosen;
-- or refuse.
-- A job is deleted in one step with the jobs that wait for it: otherwise they would wait for nothing in between.
local function choose(queue, found)
  local doomed, known, edges, units = {}, {}, 0, 0
  for i, job in ipairs(found) do
    local more = with_waiting(queue, job, known)
    for _, jid in ipairs(more) do
      local other_job = jobs.load(jid)
      edges = edges + other_job.waits
      units = units + concurrency.ending(other_job)
    end
    local heavy = units > budget.UNITS and #doomed + #more > 1
    if #doomed + #more > catalogue.most or edges > catalogue.most or heavy then
      if i == 1 then
        refusals.refuse('CANCEL_LIMIT', job.jid)
      end
      return doomed, i - 1
    end
    for _, jid in ipairs(more) do
      known[jid] = true
      doomed[#doomed + 1] = jobs.load(jid)
    end
  end
  return doomed, #found
end

-- Forget an empty queue: its own throttle, and its record.
local function forget_queue(now, queue)
  local own = throttles.own(queue)
  if own and throttles.clear(own) then
    store.emit(now, 'unlimited', own)
  end
  if queues.forget(queue) then
    store.emit(now, 'forgotten', queue)
  end
end

-- Delete jobs of a queue; the step that leaves none also deletes the queue.
function remove.obliterate(now, op)
  local busy = queues.size(op.queue, '-locks')
  if busy > 0 and not op.force then
    refusals.refuse('QUEUE_BUSY', op.queue, busy)
  end
  local wanted = {queue = op.queue}
  local found, cursor = selection.find(now, 'obliterate', op, wanted)
  local doomed, fit = choose(op.queue, found)
  if fit < #found then
    local _, before = selection.find(now, 'obliterate', {cursor = op.cursor, count = fit}, wanted)
    cursor = before
  end

  local _, jids = schedules.page(op.queue, 0, catalogue.most)
  for _, jid in ipairs(jids) do
    local schedule = schedules.find(jid)
    schedules.leave(schedule)
    recurrence.stop(now, schedule, 'obliterate')
  end
  for _, job in ipairs(concurrency.parked_first(doomed)) do
    deletion.delete_any(now, job)
  end
  local left = queues.length(op.queue) + schedules.size(op.queue)
  if left == 0 and cursor == '' and requests.timed(op.queue) == 0 then
    forget_queue(now, op.queue)
  end
  return {#doomed, left, cursor}
end

-- Deleting jobs before they are done.

local removing = {}

local function is_unfinished(job)
  return job and job.state ~= 'complete'
end

-- The same jobs, or refuse when another depends on one of them.
local function closed(named)
  local known = {}
  for _, jid in ipairs(named) do
    known[jid] = true
  end
  for _, jid in ipairs(named) do
    for _, dependent in ipairs(uniquing.dependents(jobs.load(jid))) do
      if not known[dependent] then
        refusals.refuse('HAS_DEPENDENTS', jid, dependent)
      end
    end
  end
  return named
end

-- These jobs and all that depend on them, nearest first.
local function with_dependents(named)
  local found, queue, at = {}, {}, 1
  for i, jid in ipairs(named) do
    found[jid] = true
    queue[i] = jid
  end
  while queue[at] do
    for _, dependent in ipairs(uniquing.dependents(jobs.load(queue[at]))) do
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

-- Delete an unfinished job, and its edges.
function removing.delete(now, job)
  if job.state == 'running' then
    store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, 'cancel')
  elseif job.state == 'failed' then
    stats.recovered(job.ended_at, job.queue)
  end
  store.emit(now, 'canceled', job.jid, job.queue, job.state)
  dependencies.unlink(job, dependencies.of(job))
  for _, dependent in ipairs(dependencies.dependents(job)) do
    dependencies.unlink(jobs.load(dependent), {job.jid})
  end
  jobs.remove(job)
  settling.settle(now, job)
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

-- Delete unfinished jobs, with all that depend on them or none.
function removing.cancel(now, op)
  local named, met = {}, {}
  for _, jid in ipairs(op.jids) do
    if not met[jid] and is_unfinished(jobs.get(jid)) then
      met[jid] = true
      named[#named + 1] = jid
    end
  end
  local doomed = op.cascade and with_dependents(named) or closed(named)
  check_edges(doomed)

  for _, jid in ipairs(doomed) do
    removing.delete(now, jobs.load(jid))
  end
  return doomed
end

-- Refuse to cancel unfinished jobs of which one cannot be.
function removing.check_cancel(doomed)
  closed(doomed)
  check_edges(doomed)
end

-- Cancel jobs of a queue that have not begun, unless others depend on them.
function removing.drain(now, op)
  local canceled = 0
  for _, jid in ipairs(queues.not_begun(op.queue, op.count)) do
    local job = jobs.load(jid)
    if job.waited_for == '0' or #uniquing.dependents(job) == 0 then
      removing.delete(now, job)
      canceled = canceled + 1
    end
  end
  return {canceled, queues.length(op.queue)}
end

-- What cancels a job, if it may; it ends at most 1000 dependencies.
local function canceler(now)
  local ended = 0
  return function(job)
    ended = ended + job.waits
    if job.waited_for ~= '0' or ended > catalogue.most then
      return false
    end
    removing.delete(now, job)
    return true
  end
end

-- What deletes a complete job.
local function retirer(now)
  return function(job)
    store.emit(now, 'retired', job.jid)
    jobs.remove(job)
    return true
  end
end

-- Cancel the jobs that fit, unless others depend on them; the dependencies that this ends are bounded.
function removing.cancel_many(now, op)
  local found, cursor = searching.find(now, 'cancel_many', op, searching.filter(op, op.state))
  local unfinished = {}
  for _, job in ipairs(found) do
    if is_unfinished(job) then
      unfinished[#unfinished + 1] = job
    end
  end

  return searching.bulk(op.preview, unfinished, cursor, canceler(now))
end

-- Delete finished jobs by age.
function removing.clean(now, op)
  local wanted = searching.filter(op, op.state, now - op.older_ms)
  local found, cursor = searching.find(now, 'clean', op, wanted)

  return searching.bulk(op.preview, found, cursor, op.state == 'complete' and retirer(now) or canceler(now))
end

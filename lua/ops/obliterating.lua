-- Deleting a queue with all that it has, a bounded part at a time.

local obliterating = {}

-- A job and all that wait for it, nearest first, but those that are doomed already; or refuse.
local function with_dependents(queue, job, known)
  if known[job.jid] then
    return {}
  end
  local met, more, at = {[job.jid] = true}, {job.jid}, 1
  while more[at] and #more <= catalogue.most do
    for _, dependent in ipairs(uniquing.dependents(jobs.load(more[at]))) do
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

-- As many of the jobs as one operation deletes, each with all that wait for it, and how many these are; or refuse. A job
-- goes in one step with those that wait for it: else they would wait for nothing in between.
local function choose(queue, found)
  local doomed, known, edges = {}, {}, 0
  for i, job in ipairs(found) do
    local more = with_dependents(queue, job, known)
    for _, jid in ipairs(more) do
      local other_job = jobs.load(jid)
      edges = edges + other_job.waits
    end
    if #doomed + #more > catalogue.most or edges > catalogue.most then
      if i == 1 then
        refusals.refuse('CANCEL_LIMIT', job.jid)
      end
      return doomed, i - 1
    end
    for _, jid in ipairs(more) do
      known[jid] = true
      doomed[#doomed + 1] = jid
    end
  end
  return doomed, #found
end

-- Delete a job in whatever state.
local function delete(now, job)
  if job.state == 'complete' then
    store.emit(now, 'retired', job.jid)
    jobs.remove(job)
  else
    removing.delete(now, job)
  end
end

-- Forget a queue in which nothing is left: its throttle, and what is known of it.
local function forget(now, queue)
  local own = throttles.own(queue)
  if own and throttles.clear(own) then
    store.emit(now, 'unlimited', own)
  end
  if queues.forget(queue) then
    store.emit(now, 'forgotten', queue)
  end
end

-- Delete jobs of a queue, and in the step in which none is left the queue.
function obliterating.obliterate(now, op)
  local busy = queues.size(op.queue, '-locks')
  if busy > 0 and not op.force then
    refusals.refuse('QUEUE_BUSY', op.queue, busy)
  end
  local wanted = {queue = op.queue}
  local found, cursor = searching.find(now, 'obliterate', op, wanted)
  local doomed, fit = choose(op.queue, found)
  if fit < #found then
    local _, before = searching.find(now, 'obliterate', {cursor = op.cursor, count = fit}, wanted)
    cursor = before
  end

  local _, jids = schedules.page(op.queue, 0, catalogue.most)
  for _, jid in ipairs(jids) do
    local schedule = schedules.find(jid)
    schedules.leave(schedule)
    resuming.stop(now, schedule, 'obliterate')
  end
  for _, jid in ipairs(doomed) do
    delete(now, jobs.load(jid))
  end
  local left = queues.length(op.queue) + schedules.size(op.queue)
  if left == 0 and cursor == '' then
    forget(now, op.queue)
  end
  return {#doomed, left, cursor}
end

-- Changing jobs without moving them to another queue.

local change = {}

-- Replace a job's data.
function change.update(now, op)
  local job = jobs.find(op.jid)

  store.emit(now, 'updated', job.jid)
  records.set_data(job, op.data)
  return job.jid
end

-- Change a job's priority; it keeps the ready time and the sequence that order it among jobs of equal priority.
function change.priority(now, op)
  local job = jobs.find(op.jid)

  if op.first and job.state == 'stalled' then
    store.emit(now, 'prioritized', job.jid, op.priority, 'waiting')
    jobs.lift(job)
    job.priority, job.ready_at = op.priority, 0
    options.drop(job, 'released')
    options.set(job, 'ended', 1)
    jobs.place(job, 'waiting')
    return op.priority
  end
  store.emit(now, 'prioritized', job.jid, op.priority)
  if job.state ~= 'waiting' and job.state ~= 'throttled' then
    -- other lists ignore it, and leaving a lease would end its grant
    job.priority = op.priority
    return op.priority
  end
  state_index.leave(job)
  job.priority = op.priority
  if op.first and job.state == 'waiting' then
    job.ready_at = 0
  end
  state_index.enter(job)
  if job.state == 'throttled' then
    parked.recheck(job)
  end
  return op.priority
end

-- Refuse a job that has started.
local function not_begun(job)
  local state = job.state
  if state ~= 'scheduled' and state ~= 'waiting' and state ~= 'depends' and state ~= 'throttled' then
    refusals.refuse('WRONG_STATE', job.jid, job.state)
  end
  return job
end

-- Make a job that has not started ready at another time.
function change.delay(now, op)
  local job = not_begun(jobs.find(op.jid))

  if op.qless then
    admission.park_or_admit(now, job)
    return job.state
  end
  jobs.lift(job)
  concurrency.release_unused_slot(now, job)
  if op.delay_ms > 0 then
    concurrency.wait_for_time(now, job)
  end
  store.emit(now, 'delayed', job.jid, job.queue, now + op.delay_ms)
  job.ready_at = now + op.delay_ms
  local state = stages.begins(now, job)
  concurrency.place(now, job, state)
  return state
end

-- Make a scheduled job ready now; a waiting job already is.
function change.promote(now, op)
  local job = jobs.find(op.jid)
  if job.state ~= 'scheduled' and job.state ~= 'waiting' then
    refusals.refuse('WRONG_STATE', job.jid, job.state)
  end

  if job.state == 'scheduled' then
    store.emit(now, 'promoted', job.jid, job.queue)
    jobs.lift(job)
    job.ready_at = math.min(tonumber(job.ready_at), now)
    concurrency.place(now, job, stages.begins(now, job))
  end
  return job.state
end

-- Add a line to a job's history.
function change.log(now, op)
  local job = jobs.find(op.jid)

  store.emit(now, 'logged', job.jid)
  history.add(now, job, 'log', history.quote(op.message))
  return job.jid
end

-- Report the progress of a leased job.
function change.progress(now, op)
  local job = jobs.held(op.jid, op.token)

  store.emit(now, 'progressed', job.jid)
  job.progress = op.progress
  return job.jid
end

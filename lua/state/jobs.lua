-- Jobs: the only code that writes a state.

local jobs = {}

-- A job that may not exist.
function jobs.get(jid)
  return records.get(jid)
end

-- A job that is known to exist.
function jobs.load(jid)
  return records.get(jid)
end

-- A job, or refuse.
function jobs.find(jid)
  return records.get(jid) or refusals.refuse('JOB_NOT_FOUND', jid)
end

local function lease(what, jid, token)
  return what .. ' ' .. jid .. ' ' .. token
end

-- The remembered outcome of the lease of a job that was not kept; or refuse.
local function gone(jid, token, what)
  return what and idempotency.recall(lease(what, jid, token)) or refusals.refuse('JOB_NOT_FOUND', jid)
end

-- A job leased under a token; or one whose lease this kind of call has ended, and the outcome; or refuse.
function jobs.held(jid, token, what)
  local job = jobs.get(jid)
  if not job then
    return nil, gone(jid, token, what)
  end
  if job.state == 'running' and tonumber(job.token) == token then
    return job, nil
  end
  local outcome = what and token > 0 and history.outcome(job, token, what) -- no lease has the token 0
  if not outcome and what then -- of another job that had this id and was not kept
    outcome = idempotency.recall(lease(what, jid, token))
  end
  if not outcome then
    refusals.refuse('LOCK_LOST', jid, token, job.state, job.worker)
  end
  return job, outcome
end

-- Remember how a lease ended, of a job whose history is gone: this very operation has deleted it.
function jobs.remember(job, what, outcome)
  if not jobs.get(job.jid) then
    idempotency.remember(lease(what, job.jid, job.token), outcome)
  end
end

-- A new job, in no place yet.
function jobs.create(jid)
  return records.new(jid)
end

-- A job to put: the one that there is, or a new one.
function jobs.made(jid)
  return records.get(jid) or records.new(jid)
end

-- A job as it would be in a state, so many sequences from now. It is for a read, which writes no record.
function jobs.draft(jid, state, ahead)
  local job = records.new(jid)
  job.state = state
  job.seq = store.last() + ahead
  return job
end

-- A job as it would be with a priority. It is for a read, which writes no record.
function jobs.with_priority(job, priority)
  job.priority = priority
  return job
end

-- A job as it would be if it became ready now, so many sequences from now. It is for a read, which writes no record.
function jobs.as_waiting(now, job, priority, ahead)
  jobs.with_priority(job, priority)
  job.state = 'waiting'
  job.ready_at = now
  job.seq = store.last() + ahead
  return job
end

-- Take a job out of its place. Do so before anything changes by which the place is found.
function jobs.lift(job)
  state_index.leave(job)
  if job.options ~= '' then
    ttl.leave(job)
    parked.forget_throttle(job)
  end
  job.state = ''
end

-- Put a lifted job into the place that a state says; its sequence is that of the event that told so.
function jobs.place(job, state)
  job.state = state
  job.seq = store.last()
  state_index.enter(job)
  if job.options ~= '' then
    ttl.enter(job)
  end
end

-- Delete a job, leaving nothing of it behind.
function jobs.remove(job)
  state_index.leave(job)
  ttl.leave(job)
  tags.drop(job)
  results.forget(job)
  records.remove(job)
end

-- A job's state as it is true at `now`.
function jobs.seen_at(now, job)
  if job.state == 'scheduled' and tonumber(job.ready_at) <= now then
    return 'waiting'
  end
  if job.state == 'running' and tonumber(job.expires_at) <= now then
    return 'stalled'
  end
  return job.state
end

-- Whether a job is what a search looks for.
function jobs.fits(now, job, wanted)
  local failed = job.state == 'failed'
  return (not wanted.state or jobs.seen_at(now, job) == wanted.state)
    and (not wanted.queue or job.queue == wanted.queue)
    and (not wanted.klass or job.klass == wanted.klass)
    and (not wanted.tag or tags.has(job, wanted.tag))
    and (not wanted.worker or job.worker == wanted.worker)
    and (not wanted.group or failed and job.group == wanted.group)
    and (not wanted.before or tonumber(job.ended_at) <= wanted.before)
end

-- Everything about a job, true at `now`: its id, its state, its record as it is stored; and, where there is anything to
-- say of them: its data if they stand apart, whether it is tracked, what it waits for and what waits for it.
function jobs.view(now, job)
  job.shown = records.encode(job)
  local tracked, apart = tracking.is_tracked(job.jid), job.apart == '1'
  if not (tracked or apart) and job.waits == '0' and job.waited_for == '0' then
    return {job.jid, jobs.seen_at(now, job), job.shown}
  end
  return {
    job.jid,
    jobs.seen_at(now, job),
    job.shown,
    apart and records.data(job) or '',
    tracked and 1 or 0,
    dependencies.of(job),
    dependencies.dependents(job),
  }
end

function jobs.views(now, jids)
  records.prefetch(jids)
  local shown = {}
  for _, jid in ipairs(jids) do
    local job = jobs.get(jid)
    if job then
      shown[#shown + 1] = jobs.view(now, job)
    end
  end
  return shown
end

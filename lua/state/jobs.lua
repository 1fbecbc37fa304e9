-- Jobs: the only code that writes a state.

local jobs = {}

-- A job, or nil if it does not exist.
function jobs.get(jid)
  return records.get(jid)
end

-- A job that is known to exist.
function jobs.load(jid)
  return records.get(jid) or records.missing(jid)
end

-- A job, or refuse.
function jobs.find(jid)
  return records.get(jid) or refusals.refuse('JOB_NOT_FOUND', jid)
end

-- The name under which the outcome of a lease is remembered.
local function lease(what, jid, token)
  return what .. ' ' .. jid .. ' ' .. token
end

-- The remembered outcome of the lease of a job that was not kept; or refuse.
local function gone(jid, token, what)
  return what and idempotency.recall(lease(what, jid, token)) or refusals.refuse('JOB_NOT_FOUND', jid)
end

-- A job that is leased under this token; or the job and the outcome, if a call of the kind `what` has ended that lease;
-- or refuse.
function jobs.held(jid, token, what)
  local job = jobs.get(jid)
  if not job then
    return nil, gone(jid, token, what)
  end
  if job.state == 'running' and job.token == token then
    return job, nil
  end
  local outcome = what and token ~= '0' and history.outcome(job, token, what) -- no lease has the token 0
  if not outcome and what then -- the lease of an earlier job with this id that was not kept
    outcome = idempotency.recall(lease(what, jid, token))
  end
  if not outcome then
    refusals.refuse('LOCK_LOST', jid, token, job.state, job.worker)
  end
  return job, outcome
end

-- Remember how a lease ended, if the job's history is gone because this operation has deleted the job.
function jobs.remember(job, what, outcome)
  if not jobs.get(job.jid) then
    idempotency.remember(lease(what, job.jid, job.token), outcome)
  end
end

-- A new job, in no list yet.
function jobs.create(jid)
  return records.new(jid)
end

-- The existing job, or a new one.
function jobs.made(jid)
  return records.get(jid) or records.new(jid)
end

-- A job as it would be in a state, `ahead` sequences from now. For a read, which writes no record.
function jobs.draft(jid, state, ahead)
  local job = records.new(jid)
  job.state = state
  job.seq = store.last() + ahead
  return job
end

-- A copy of a job with another priority. For a read, which writes no record.
function jobs.with_priority(job, priority)
  job.priority = priority
  return job
end

-- A copy of a job as it would be if it became ready now, `ahead` sequences from now. For a read, which writes no
-- record.
function jobs.as_waiting(now, job, priority, ahead)
  jobs.with_priority(job, priority)
  job.state = 'waiting'
  job.ready_at = now
  job.seq = store.last() + ahead
  return job
end

-- Take a job out of its lists. Call it before changing any field that orders them.
function jobs.lift(job)
  state_index.leave(job)
  if job.options ~= '' then
    ttl.leave(job)
    parked.forget_throttle(job)
    options.drop(job, 'told')
    options.drop(job, 'ended')
  end
  job.state = ''
end

-- Put a lifted job into the lists of a state; its sequence is that of the last event, which told of it.
function jobs.place(job, state)
  job.state = state
  job.seq = store.last()
  if state ~= 'waiting' and job.options ~= '' then
    options.drop(job, 'turn')
  end
  state_index.enter(job)
  if job.options ~= '' then
    ttl.enter(job)
  end
end

-- Delete a job and everything that refers to it.
function jobs.remove(job)
  state_index.leave(job)
  ttl.leave(job)
  tags.drop(job)
  results.forget(job)
  records.remove(job)
end

-- The state of a job that is true at `now`.
function jobs.seen_at(now, job)
  if job.state == 'scheduled' and tonumber(job.ready_at) <= now then
    return 'waiting'
  end
  if job.state == 'running' and tonumber(job.expires_at) <= now then
    return 'stalled'
  end
  return job.state
end

-- Whether a job matches a search.
function jobs.fits(now, job, wanted)
  local failed = job.state == 'failed'
  return (not wanted.state or jobs.seen_at(now, job) == wanted.state)
    and (not wanted.queue or job.queue == wanted.queue)
    and (not wanted.klass or job.klass == wanted.klass)
    and (not wanted.tag or tags.has(job, wanted.tag))
    and (not wanted.worker or job.worker == wanted.worker)
    and (not wanted.group or failed and job.group == wanted.group)
    and (not wanted.before or tonumber(job.ended_at) <= wanted.before)
    and (not wanted.klass_like or subjects.like(wanted.klass_like, job.klass))
    and (not wanted.jid_like or subjects.like(wanted.jid_like, job.jid))
end

-- Everything about a job, true at `now`: its id, its state, and its record as stored. If there are any, also its
-- separate data, whether it is tracked, its dependencies and its dependents.
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

-- Everything about several jobs. (A comprehension would cost the caller two cells and a function.)
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

-- Finishing leased jobs. Each verb ends a lease, and the job's history keeps the outcome to answer a repeated call.

local finish = {}

local SWEEP = 100

-- Check the arguments that need `next`; give the edges for the next queue; or refuse.
local function check_next(operation, op)
  if not op.next then
    if op.delay_ms ~= 0 then
      refusals.refuse('BAD_ARGUMENT', operation, 'delay_ms')
    elseif #op.depends > 0 then
      refusals.refuse('BAD_ARGUMENT', operation, 'depends')
    end
  end
  return #op.depends > 0 and dependencies.check_more(op.jid, op.depends) or dependencies.no_edges
end

-- Refuse `next` for a job that is completed together with others.
local function check_one_of_many(op)
  if op.next then
    refusals.refuse('BAD_ARGUMENT', 'complete_many', 'next')
  end
  check_next('complete_many', op)
end

-- Delete complete jobs that are past their retention: at least as many as one operation completes, so that none
-- accumulate. Say whether there were any.
local function retire(now, most)
  local found = completed.expired(now, most)
  if #found > 1 then
    store.gather()
  end
  for i = 1, #found do
    local job = found[i]
    store.emit(now, 'retired', job.jid)
    jobs.remove(job)
  end
  return failure.retire_due(now, most) or #found > 0
end

-- Put a completed job into its next queue; give its new state.
local function advance(now, job, op, depends, queue, worker, token, run_ms)
  dependencies.link(job, depends)
  job.ready_at = now + op.delay_ms
  local state = stages.begins(now, job)
  history.add(now, job, 'completed', job.token, state)
  stages.enter(now, job, op.next, now + op.delay_ms)
  queues.register(now, op.next)
  store.emit(now, 'advanced', job.jid, queue, worker, token, run_ms, op.next, state)
  concurrency.place(now, job, state)
  return state
end

-- Keep the result of a revoked job, and fail it.
local function complete_revoked(now, job, op)
  jobs.lift(job)
  job.result = op.result
  if op.data then
    records.set_data(job, op.data)
  end
  history.add(now, job, 'completed', job.token, 'failed')
  failure.fail_revoked(now, job)
  return 'failed'
end

-- Complete a held job; give its new state.
local function complete(now, job, op, depends)
  if job.options ~= '' and failure.is_revoked(job) then
    return complete_revoked(now, job, op)
  end
  local queue, worker, token, run_ms = job.queue, job.worker, job.token, math.max(now - job.popped_at, 0)
  jobs.lift(job)
  stats.ran(now, job, worker, run_ms)
  job.result = op.result
  records.clear_failure(job)
  if op.data then
    records.set_data(job, op.data)
  end
  if op.next then
    return advance(now, job, op, depends, queue, worker, token, run_ms)
  end

  store.emit(now, 'completed', job.jid, queue, worker, token, run_ms)
  history.add(now, job, 'completed', token, 'complete')
  job.worker, job.grant, job.expires_at = '', '', 0
  job.remaining, job.ended_at = job.retries, now
  jobs.place(job, 'complete')
  if job.waited_for ~= '0' then
    for _, waiting_job in ipairs(dependencies.resolve(job)) do
      stages.unblock(now, waiting_job)
    end
  end
  cleanup.clean_up(now, job)
  return 'complete'
end

-- Complete a held job, and retire others; give its new state. It is gone itself if it is not kept.
local function complete_one(now, job, op, depends)
  local outcome = complete(now, job, op, depends)
  local gone = not op.next and retire(now, SWEEP)
  if gone or outcome == 'failed' then
    jobs.remember(job, 'completed', outcome)
  end
  return outcome
end

-- Complete a leased job, or send it on to its next queue.
function finish.complete(now, op)
  local job, outcome = jobs.held(op.jid, op.token, 'completed')
  if outcome then
    return outcome
  end
  local depends = op.named and check_next('complete', op) or dependencies.no_edges
  results.check_copies(job, op.result)

  return complete_one(now, job, op, depends)
end

-- Refuse more work than one operation may do.
local function check_budget(op, found, outcomes)
  local units = 0
  for i, one in ipairs(op.jobs) do
    if not outcomes[i] then
      results.check_copies(found[i], one.result)
      units = units + concurrency.ending(found[i]) + math.floor((#one.result + #(one.data or '')) / budget.BLOCK)
        + results.copying(found[i], one.result)
    end
  end
  budget.check('complete_many', #op.jobs, units)
  budget.spend(units)
end

-- Complete several leased jobs, all or none.
function finish.complete_many(now, op)
  local found, outcomes = {}, {}
  put.check_distinct(op.jobs)
  for i = 1, #op.jobs do
    local one = op.jobs[i]
    found[i], outcomes[i] = jobs.held(one.jid, one.token, 'completed')
    outcomes[i] = outcomes[i] or false
  end
  for i = 1, #op.jobs do
    if op.jobs[i].named then
      check_one_of_many(op.jobs[i])
    end
  end
  check_budget(op, found, outcomes)

  local news = {}
  for i = 1, #op.jobs do
    if not outcomes[i] then
      news[#news + 1] = i
      outcomes[i] = complete(now, found[i], op.jobs[i], dependencies.no_edges)
    end
  end
  if news[1] then
    retire(now, catalogue.most)
  end
  for i = 1, #news do
    jobs.remember(found[news[i]], 'completed', outcomes[news[i]])
  end
  return outcomes
end

-- Complete a leased job, then lease the next ones.
function finish.complete_and_pop(now, op)
  local job, outcome = jobs.held(op.jid, op.token, 'completed')
  local depends = not outcome and check_next('complete_and_pop', op) or dependencies.no_edges
  local again = workers.granted(op.worker, op.request)
  if not outcome then
    results.check_copies(job, op.result)
  end

  if not outcome then -- a first completion has no grant yet, even if another call used the same request
    again = {}
    outcome = complete_one(now, job, op, depends)
  end
  if #again > 0 then
    return {outcome, jobs.views(now, again)}
  end
  return {outcome, pop.grant(now, op.queue, op.worker, op.count, op.wait, op.request)}
end

-- Fail a leased job into a group.
function finish.fail(now, op)
  local job, outcome = jobs.held(op.jid, op.token, 'failed')
  if outcome then
    return op.jid
  end

  jobs.lift(job)
  if op.data then
    records.set_data(job, op.data)
  end
  if not op.qless then
    history.add(now, job, 'raised', op.group, history.brief(op.message))
  end
  if failure.is_revoked(job) then
    failure.fail_revoked(now, job, op.message, job.token)
  else
    failure.fail_job(now, job, op.group, op.message, job.token)
  end
  jobs.remember(job, 'failed', op.group)
  return op.jid
end

-- End the lease of a lifted job; give the state in which it begins again.
local function give_back(now, job, delay_ms)
  job.expires_at = 0
  job.ready_at = now + delay_ms
  return stages.begins(now, job)
end

-- Give a leased job back to be tried again, or fail it when no retries remain.
function finish.retry(now, op)
  local job, outcome = jobs.held(op.jid, op.token, 'retried')
  if outcome then
    return tonumber(outcome)
  end

  jobs.lift(job)
  local revoked = failure.is_revoked(job)
  if op.group and not op.qless then
    history.add(now, job, 'raised', op.group, history.brief(op.message))
  end
  history.add(now, job, 'retried', job.token, revoked and -1 or job.remaining - 1)
  if revoked or tonumber(job.remaining) == 0 then
    if revoked then
      failure.fail_revoked(now, job, op.message)
    else
      local message = op.message ~= '' and op.message or 'No retries remained.'
      failure.fail_job(now, job, op.group or 'failed-retries-' .. job.queue, message)
    end
    jobs.remember(job, 'retried', '-1')
    return -1
  end
  local delay_ms = math.max(op.delay_ms, backoff.delay(job))
  job.remaining = job.remaining - 1
  if not op.qless then
    stats.retried(now, job.queue)
  end
  local state = give_back(now, job, delay_ms)
  store.emit(now, 'retried', job.jid, job.queue, job.worker, job.token, job.remaining, state, op.group)
  if op.group then
    records.set_failure(job, op.group, op.message, now, job.worker)
  end
  job.worker, job.grant = '', ''
  jobs.place(job, state)
  return job.remaining
end

-- Give a leased job back without counting a retry; it may wait for other jobs first.
function finish.release(now, op)
  local job, outcome = jobs.held(op.jid, op.token, 'released')
  if outcome then
    return outcome
  end
  local depends = #op.depends > 0 and dependencies.check_more(op.jid, op.depends) or dependencies.no_edges

  jobs.lift(job)
  if op.data then
    records.set_data(job, op.data)
  end
  if failure.is_revoked(job) then
    history.add(now, job, 'released', job.token, 'failed')
    failure.fail_revoked(now, job)
    jobs.remember(job, 'released', 'failed')
    return 'failed'
  end
  dependencies.link(job, depends)
  local state = give_back(now, job, op.delay_ms)
  history.add(now, job, 'released', job.token, state)
  store.emit(now, 'released', job.jid, job.queue, job.worker, job.token, state)
  job.worker, job.grant = '', ''
  jobs.place(job, state)
  return state
end

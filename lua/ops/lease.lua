-- Renewing and ending leases, and revoking jobs.

local lease = {}

-- When a lease that is granted or renewed now ends: never later than `timeout_ms` after its claim.
function lease.expiry(now, job)
  if job.options == '' then
    return now + config.heartbeat(job.queue)
  end
  local own, longest = options.get(job, 'lease_ms'), options.get(job, 'timeout_ms')
  local ends = now + (own or config.heartbeat(job.queue))
  return longest and math.min(ends, job.popped_at + longest) or ends
end

-- Whether an expired lease could not have been renewed, because it had reached `timeout_ms`.
function lease.ran_too_long(job)
  local longest = options.get(job, 'timeout_ms')
  return longest and tonumber(job.expires_at) >= job.popped_at + longest
end

-- Renew a lease from now. A lapsed lease is renewed too, as long as no other worker has taken the job.
function lease.heartbeat(now, op)
  local job = jobs.held(op.jid, op.token)

  workers.seen(now, job.worker)
  if op.data then
    records.set_data(job, op.data)
  end
  options.drop(job, 'told')
  queues.renew(job, lease.expiry(now, job))
  return {tonumber(job.expires_at), failure.is_revoked(job) and 1 or 0}
end

-- End a lease, and perhaps release the job's throttles. A revoked job fails.
local function take_away(now, job, released)
  local revoked = failure.is_revoked(job)
  store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, revoked and 'revoke' or 'timeout')
  jobs.lift(job)
  history.add(now, job, 'timed_out', job.worker, job.token)
  if revoked then
    failure.fail_revoked(now, job)
    return
  end
  job.worker, job.grant = '', ''
  job.expires_at = 0
  job.ready_at = now
  if released then
    for _, name in ipairs(throttles.counted(job)) do
      throttles.release(job, name)
    end
  end
  jobs.place(job, 'stalled')
end

-- End leases: the jobs are the next to be handed out.
function lease.timeout(now, op)
  local found, taken, jids = {}, {}, {}
  for _, jid in ipairs(op.jids) do
    local job = jobs.find(jid)
    if not taken[jid] then
      taken[jid] = true
      found[#found + 1] = job
      jids[#jids + 1] = jid
    end
  end
  local units = 0
  for _, job in ipairs(found) do
    if job.state ~= 'running' then
      refusals.refuse('WRONG_STATE', job.jid, job.state)
    end
    units = units + budget.moving(job) + parked.freeing(job)
  end
  budget.check('timeout', #found, units)

  for _, job in ipairs(found) do
    take_away(now, job, op.qless)
  end
  return jids
end

-- Fail jobs that are not running, and mark running ones as revoked.
function lease.revoke(now, op)
  local found, met, ended, units = {}, {}, 0, 0
  for _, jid in ipairs(op.jids) do
    local job = jobs.find(jid)
    if not met[jid] then
      met[jid] = true
      found[#found + 1] = job
      ended = ended + job.waits
      units = units + budget.failing(job) + concurrency.ending(job)
    end
  end
  if ended > catalogue.most then
    refusals.refuse('DEPENDENCY_LIMIT', op.jids[1])
  end
  budget.check('revoke', #found, units)

  local states, shown = {}, {}
  for _, job in ipairs(concurrency.parked_first(found)) do
    states[job.jid] = failure.revoke_one(now, job)
  end
  for i, job in ipairs(found) do
    shown[i] = states[job.jid]
  end
  return shown
end

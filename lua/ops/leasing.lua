-- Renewing leases, and taking them away.

local leasing = {}

-- Renew a lease from now. A lapsed one too, as long as nobody has taken the job.
function leasing.heartbeat(now, op)
  local job = jobs.held(op.jid, op.token)

  workers.seen(now, job.worker)
  if op.data then
    records.set_data(job, op.data)
  end
  queues.renew(job, now + config.heartbeat(job.queue))
  return job.expires_at
end

-- Take leases away: the jobs are the next to be handed out.
function leasing.timeout(now, op)
  local found, taken, jids = {}, {}, {}
  for _, jid in ipairs(op.jids) do
    local job = jobs.find(jid)
    if not taken[jid] then
      taken[jid] = true
      found[#found + 1] = job
      jids[#jids + 1] = jid
    end
  end
  for _, job in ipairs(found) do
    if job.state ~= 'running' then
      refusals.refuse('WRONG_STATE', job.jid, job.state)
    end
  end

  for _, job in ipairs(found) do
    store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, 'timeout')
    jobs.lift(job)
    history.add(now, job, 'timed_out', job.worker, job.token)
    job.worker, job.grant = '', ''
    job.expires_at = 0
    job.ready_at = now
    jobs.place(job, 'stalled')
  end
  return jids
end

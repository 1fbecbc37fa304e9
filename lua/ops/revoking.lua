-- Calling jobs off.

local revoking = {}

-- Fail a job that nobody runs, or let who runs it know; give its state.
function revoking.revoke_one(now, job)
  if job.state == 'complete' or job.state == 'failed' or burying.is_revoked(job) then
    return job.state
  end
  store.emit(now, 'revoked', job.jid, job.queue, job.worker, job.token)
  if job.state == 'running' then
    options.set(job, 'revoked', 1)
    return 'running'
  end
  dependencies.unlink(job, dependencies.of(job))
  jobs.lift(job)
  burying.bury_revoked(now, job)
  return 'failed'
end

-- Fail jobs that nobody runs, and let those who run the others know.
function revoking.revoke(now, op)
  local found, met, ended = {}, {}, 0
  for _, jid in ipairs(op.jids) do
    local job = jobs.find(jid)
    if not met[jid] then
      met[jid] = true
      found[#found + 1] = job
      ended = ended + job.waits
    end
  end
  if ended > catalogue.most then
    refusals.refuse('DEPENDENCY_LIMIT', op.jids[1])
  end

  local states = {}
  for i, job in ipairs(found) do
    states[i] = revoking.revoke_one(now, job)
  end
  return states
end

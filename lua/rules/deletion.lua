-- Deleting jobs, with their edges.

local deletion = {}

-- Delete an unfinished job, and its edges.
function deletion.delete(now, job)
  if job.state == 'running' then
    store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, 'cancel')
  elseif job.state == 'failed' then
    stats.recovered(job.ended_at, job.queue)
  end
  budget.spend(budget.weight(job))
  store.emit(now, 'canceled', job.jid, job.queue, job.state)
  dependencies.unlink(job, dependencies.of(job))
  for _, dependent in ipairs(dependencies.dependents(job)) do
    dependencies.unlink(jobs.load(dependent), {job.jid})
  end
  jobs.remove(job)
  cleanup.clean_up(now, job)
end

-- Delete a job in any state.
function deletion.delete_any(now, job)
  if job.state == 'complete' then
    store.emit(now, 'retired', job.jid)
    jobs.remove(job)
  else
    deletion.delete(now, job)
  end
end

-- How a job fails, whoever says so.

local burying = {}

-- Fail a lifted job into a group. `ended` is the token of the lease that ended so by its holder's own word, if any: a
-- holder who lost the lease must not be told that it failed the job.
function burying.bury(now, job, group, message, ended)
  store.emit(now, 'failed', job.jid, job.queue, job.worker, job.token, group)
  history.add(now, job, 'failed', ended or 0, group)
  stats.failed(now, job.queue)
  records.set_failure(job, group, message, now, job.worker)
  job.worker, job.grant = '', ''
  job.expires_at = 0
  job.ended_at = now
  jobs.place(job, 'failed')
  settling.settle(now, job)
end

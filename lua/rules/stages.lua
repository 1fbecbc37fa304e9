-- The stages of a job: how one begins in a queue, and how a blocked job continues.

local stages = {}

-- Refuse a put that names both a delay and a moment.
function stages.check(op, operation)
  if op.at and op.delay_ms ~= 0 then
    refusals.refuse('BAD_ARGUMENT', operation, 'at')
  end
end

-- When the job of a put is ready.
function stages.due(now, op)
  return op.at and math.max(op.at, now) or now + op.delay_ms
end

-- The state in which a job begins: it depends on its dependencies, its ready time and its concurrency key.
function stages.begins(now, job)
  if job.waits ~= '0' then
    concurrency.yield_slot(now, job)
    return 'depends'
  end
  if tonumber(job.ready_at) > now then
    concurrency.wait_for_time(now, job)
    return 'scheduled'
  end
  return job.options ~= '' and concurrency.admit(job) or 'waiting'
end

-- Begin a lifted job's stage in a queue, to be ready at a moment; give the state in which it begins.
function stages.enter(now, job, queue, ready_at)
  job.queue = queue
  job.worker, job.grant = '', ''
  job.expires_at, job.ended_at = 0, 0
  job.remaining = job.retries
  if job.options ~= '' then
    options.drop(job, 'lapses')
  end
  job.put_at = now
  job.ready_at = ready_at
  history.add(now, job, 'put', queue)
  return stages.begins(now, job)
end

-- Continue with a job that has no dependencies left.
function stages.unblock(now, job)
  jobs.lift(job)
  job.ready_at = math.max(tonumber(job.ready_at), now)
  local state = stages.begins(now, job)
  store.emit(now, 'unblocked', job.jid, job.queue, state)
  concurrency.place(now, job, state)
end

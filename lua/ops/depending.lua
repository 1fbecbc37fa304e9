-- Changing what a job waits for.

local depending = {}

local function waits_for_others(jid)
  local job = jobs.find(jid)
  if job.state ~= 'depends' then
    refusals.refuse('WRONG_STATE', jid, job.state)
  end
  return job
end

-- Let a job go on that waits for nothing more, when its time has come.
function depending.unblock(now, job)
  jobs.lift(job)
  job.ready_at = math.max(tonumber(job.ready_at), now)
  local state = putting.begins(now, job)
  store.emit(now, 'unblocked', job.jid, job.queue, state)
  lining.place(now, job, state)
end

-- Add dependencies to a job that waits for others.
function depending.depends_on(now, op)
  local job = waits_for_others(op.jid)
  local edges = dependencies.check_more(op.jid, op.dependencies)

  dependencies.link(job, edges)
  store.emit(now, 'blocked', job.jid, job.waits)
  return dependencies.of(job)
end

-- Remove dependencies; when none is left, the job goes on.
function depending.depends_off(now, op)
  local job = waits_for_others(op.jid)
  if op.all then
    dependencies.check_bounded(job)
  end

  dependencies.unlink(job, op.all and dependencies.of(job) or op.dependencies)
  if job.waits == '0' then
    depending.unblock(now, job)
  end
  return dependencies.of(job)
end

-- Show what became of the named dependencies of a job.
function depending.show_results(now, op)
  return results.view(now, jobs.find(op.jid))
end

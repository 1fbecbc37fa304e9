-- Changing the dependencies of a job.

local depend = {}

-- Find a job that waits for others, or refuse.
local function waits_for_others(jid)
  local job = jobs.find(jid)
  if job.state ~= 'depends' then
    refusals.refuse('WRONG_STATE', jid, job.state)
  end
  return job
end

-- Add dependencies to a job that waits for others.
function depend.depends_on(now, op)
  local job = waits_for_others(op.jid)
  local edges = dependencies.check_more(op.jid, op.dependencies)

  dependencies.link(job, edges)
  store.emit(now, 'blocked', job.jid, job.waits)
  return dependencies.of(job)
end

-- Remove dependencies; when none is left, the job is unblocked.
function depend.depends_off(now, op)
  local job = waits_for_others(op.jid)
  if op.all then
    dependencies.check_bounded(job)
  end

  dependencies.unlink(job, op.all and dependencies.of(job) or op.dependencies)
  if job.waits == '0' then
    stages.unblock(now, job)
  end
  return dependencies.of(job)
end

-- Show the outcomes of a job's named dependencies.
function depend.results(now, op)
  return results.view(now, jobs.find(op.jid), op)
end

-- Propagation of failures: each dependent of a failed job follows the policy of its edge. The rules are described in
-- qmodel/model/rules/propagation.py.

local propagation = {}

-- Fail a job that waits for others.
local function fail(now, job, message)
  if job.state == 'depends' then
    jobs.lift(job)
    failure.fail_job(now, job, 'failed-dependencies-' .. job.queue, message)
  end
end

-- Count a dependency as met; unblock the job if it was the last.
local function ignore(now, job, other_job, state, message)
  dependencies.ignore(job, other_job, state, message)
  if job.state == 'depends' and job.waits == '0' then
    stages.unblock(now, job)
  end
end

-- Collect a job to be canceled, or fail it if a dependent blocks that.
local function doom(now, job, message, doomed)
  if #dependencies.under(job, 'block') > 0 then
    fail(now, job, message)
  else
    doomed[#doomed + 1] = job.jid
  end
end

-- Let the dependents of a failed job follow their policies; collect those to cancel; give how much work it was.
local function follow(now, job, doomed)
  local failing, ignoring = dependencies.under(job, 'fail'), dependencies.under(job, 'ignore')
  for _, jid in ipairs(failing) do
    fail(now, jobs.load(jid), 'Its dependency ' .. job.jid .. ' failed.')
  end
  for _, jid in ipairs(ignoring) do
    ignore(now, jobs.load(jid), job, 'failed', job.message)
  end
  for _, jid in ipairs(dependencies.under(job, 'cancel')) do
    doom(now, jobs.load(jid), 'Its dependency ' .. job.jid .. ' failed.', doomed)
  end
  local size = #failing + #ignoring
  return (size > 0 or #doomed > 0) and size or 1
end

-- Let the dependents of a canceled job follow their policies.
local function leave(now, job, doomed)
  for _, jid in ipairs(dependencies.under(job, 'ignore')) do
    ignore(now, jobs.load(jid), job, 'canceled', '')
  end
  local message = 'Its dependency ' .. job.jid .. ' was canceled.'
  for _, jid in ipairs(dependencies.under(job, 'fail')) do
    dependencies.unlink(jobs.load(jid), {job.jid})
    fail(now, jobs.load(jid), message)
  end
  for _, jid in ipairs(dependencies.under(job, 'cancel')) do
    dependencies.unlink(jobs.load(jid), {job.jid})
    doom(now, jobs.load(jid), message, doomed)
  end
end

-- Cancel the last collected job, and let its dependents follow; give how much work it was.
local function cancel(now, doomed)
  local job = jobs.get(table.remove(doomed))
  if not job or #dependencies.under(job, 'block') > 0 then -- collected twice; or a dependent blocks it now
    return 1
  end
  local canceled = #dependencies.under(job, 'cancel')
  local size = job.waited_for - canceled + math.max(tonumber(job.waits), 1)
  leave(now, job, doomed)
  if tonumber(job.waits) > catalogue.most then
    dependencies.unlink(job, dependencies.of(job))
    doomed[#doomed + 1] = job.jid
  else
    deletion.delete(now, job)
  end
  return size
end

-- Leave the cancellation of a job to the next operation.
local function put_off(now, jid)
  local job = jobs.get(jid)
  if job then
    fail(now, job, 'It is about to be canceled, as its dependency was, or failed.')
    cascade.push(job, true)
  end
end

-- Process the dependents of failed jobs, the latest failure first, within the bounds of one operation; say whether
-- there were any.
function propagation.propagate(now)
  if not cascade.is_left() then
    return false
  end
  store.gather_no_more()
  local room, doomed = catalogue.most, {}
  while room > 0 and (#doomed > 0 or cascade.is_left()) do
    if #doomed > 0 then
      room = room - cancel(now, doomed)
    else
      local job, cancels = cascade.take()
      if not job then
        room = room - 1
      elseif cancels then
        doomed[1] = job.jid
      else
        room = room - follow(now, job, doomed)
      end
    end
  end
  for _, jid in ipairs(doomed) do
    put_off(now, jid)
  end
  return true
end

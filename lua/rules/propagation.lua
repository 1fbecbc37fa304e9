-- Propagation: each dependent of a failed job follows the policy of its edge, and so does each of a request that ended
-- badly. The rules are described in qmodel/model/rules/propagation.py.

local propagation = {}

local FOLLOWED = {'fail', 'ignore', 'cancel'} -- by a dependent of a failed job
local LEFT = {'ignore', 'fail', 'cancel'} -- by one of a canceled job, or of a request that ended badly

-- Whether the budget has room for a job that is to keep a text, which it always has for the first one; if so, spend it.
local function affords(job, bounds, text)
  return budget.take(budget.weight(job) + budget.of_result(#text) - 1, bounds.kept, budget.room() < bounds.begun)
end

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

-- Whether a dependent prevents that a job is canceled; one that only waits for its key does not.
local function is_blocked(job)
  local blocking = dependencies.blocking(job)
  return #blocking > 1 or #blocking == 1 and not deduplication.waits_for_key(blocking[1], job)
end

-- Collect a job to be canceled, or fail it if a dependent blocks that.
local function doom(now, job, message, doomed)
  if is_blocked(job) then
    fail(now, job, message)
  else
    doomed[#doomed + 1] = job.jid
  end
end

-- Let a dependent of a failed job follow the policy of its edge, unless it has; say whether the budget has room for it.
local function follow_one(now, job, policy, waiting_job, doomed, bounds)
  if waiting_job.state ~= 'depends' and (policy == 'fail' or is_blocked(waiting_job)) then
    return true
  end
  if not affords(waiting_job, bounds, policy == 'ignore' and job.message or '') then
    return false
  end
  if policy == 'fail' then
    fail(now, waiting_job, 'Its dependency ' .. job.jid .. ' failed.')
  elseif policy == 'ignore' then
    ignore(now, waiting_job, job, 'failed', job.message)
  else
    doom(now, waiting_job, 'Its dependency ' .. job.jid .. ' failed.', doomed)
  end
  return true
end

-- Let the dependents of a failed job follow their policies; collect those to cancel; say whether all have followed. The
-- others follow later.
local function follow(now, job, doomed, bounds)
  for _, policy in ipairs(FOLLOWED) do
    for _, jid in ipairs(dependencies.under(job, policy)) do
      if not follow_one(now, job, policy, jobs.load(jid), doomed, bounds) then
        cascade.push(job)
        return false
      end
    end
  end
  budget.spend(1 + math.floor(job.waited_for / 4))
  return true
end

-- Let a dependent of a canceled job, or of a request that ended badly, follow the policy of its edge, which ends.
local function leave_one(now, job, policy, waiting_job, message, doomed)
  if policy == 'ignore' then
    ignore(now, waiting_job, job, 'canceled', '')
    return
  end
  dependencies.unlink(waiting_job, {job.jid})
  if policy == 'fail' then
    fail(now, waiting_job, message)
  else
    doom(now, waiting_job, message, doomed)
  end
end

-- Let the dependents of a canceled job, or of a request that ended badly, follow their policies; say whether all have
-- followed.
local function leave(now, job, message, doomed, bounds)
  for _, policy in ipairs(LEFT) do
    for _, jid in ipairs(dependencies.under(job, policy)) do
      local waiting_job = jobs.load(jid)
      if not affords(waiting_job, bounds, '') then
        return false
      end
      leave_one(now, job, policy, waiting_job, message, doomed)
    end
  end
  return true
end

-- Let the dependents of a request go on; say whether all have.
local function let_go(now, job, bounds)
  local jids = dependencies.dependents(job)
  records.prefetch(jids)
  for _, jid in ipairs(jids) do
    local waiting_job = jobs.load(jid)
    if not affords(waiting_job, bounds, '') then
      return false
    end
    ignore(now, waiting_job, job, '', '')
  end
  return true
end

-- Let the dependents of an ended request go, or follow their policies; say whether all have. The others follow later.
local function end_request(now, request, doomed, bounds)
  local job, whole = dependencies.record_of(request), false
  if requests.has_ended_well(request) then
    whole = let_go(now, job, bounds)
  else
    local message = 'Its request ' .. request.id .. ' ended as ' .. request.state .. ', with ' .. store.text(request.done) .. ' of '
      .. store.text(request.total) .. ' sub-requests done.'
    whole = leave(now, job, message, doomed, bounds)
  end
  if not whole then
    cascade.push(job)
    return false
  end
  budget.spend(1 + math.floor(job.waited_for / 4))
  return true
end

-- Cancel the last collected job, and let its dependents follow; if they are too many, collect it for later.
local function cancel(now, doomed, late, bounds)
  local job = jobs.get(table.remove(doomed))
  if not job or is_blocked(job) then -- collected twice; or a dependent blocks it now
    return
  end
  if not leave(now, job, 'Its dependency ' .. job.jid .. ' was canceled.', doomed, bounds) then
    late[#late + 1] = job.jid
  elseif not jobs.get(job.jid) then -- past its retention, and deleted when a dependent failed
    return
  elseif tonumber(job.waits) > catalogue.most then
    dependencies.unlink(job, dependencies.of(job))
    late[#late + 1] = job.jid
  else
    deletion.delete(now, job)
  end
end

-- Leave the cancellation of a job to the next operation.
local function put_off(now, jid)
  local job = jobs.get(jid)
  if job then
    fail(now, job, 'It is about to be canceled, as its dependency was, or failed.')
    cascade.push(job, true)
  end
end

-- Process the last entry of the cascade; say whether the budget had room for it.
local function next_(now, doomed, bounds)
  local job, cancels = cascade.take()
  local request = job and dependencies.request_of(job)
  if not job then
    budget.spend(1)
    return true
  elseif request then
    return end_request(now, request, doomed, bounds)
  elseif not cancels then
    return follow(now, job, doomed, bounds)
  elseif not affords(job, bounds, '') then
    cascade.push(job, true)
    return false
  end
  doomed[#doomed + 1] = job.jid
  return true
end

-- Process the dependents of failed jobs, the latest failure first, within the bounds of one operation; say whether
-- there were any.
function propagation.propagate(now)
  if not cascade.is_left() then
    return false
  end
  store.gather_no_more()
  local room, half = budget.room(), math.floor(budget.UNITS / 2)
  local bounds = {begun = room, kept = math.min(room, half) - half}
  local doomed, late, more = {}, {}, true
  while #doomed > 0 or more and cascade.is_left() do
    if #doomed > 0 then
      cancel(now, doomed, late, bounds)
    else
      more = next_(now, doomed, bounds) and budget.fits(1, bounds.kept)
    end
  end
  for _, jid in ipairs(late) do
    put_off(now, jid)
  end
  return true
end

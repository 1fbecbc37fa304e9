-- How a job fails, whatever the cause.

local failure = {}

local SWEEP = 3

local OF_LETTER = {'lifo', 'lease_ms', 'timeout_ms'}

-- Copy a job to its dead letter.
local function copy(job, letter_job)
  letter_job.klass = job.klass
  records.set_data(letter_job, job.apart == '1' and records.data(job) or job.data)
  letter_job.priority = job.priority
  letter_job.retries = job.retries
  records.set_failure(letter_job, job.group, job.message, tonumber(job.failed_at), job.failed_worker)
  for _, name in ipairs(OF_LETTER) do
    local given = options.get(job, name)
    if given then
      options.set(letter_job, name, given)
    end
  end
  options.set(letter_job, 'origin', job.jid)
  options.set(letter_job, 'origin_queue', job.queue)
  options.set(letter_job, 'origin_dead_queue', options.get(job, 'dead_queue'))
end

-- Put a dead letter of a failed job, if the job has a dead queue. A letter has none itself, so there are no chains of
-- letters.
local function write_letter(now, job)
  local to = options.get(job, 'dead_queue')
  local jid = string.sub(job.jid, 1, 100) .. '-dead-' .. store.text(job.seq)
  if not to or jobs.get(jid) then
    return
  end
  budget.spend(budget.weight(job))
  store.emit(now, 'dead_lettered', job.jid, job.queue, jid, to)
  local letter_job = jobs.create(jid)
  copy(job, letter_job)
  queues.register(now, to)
  local state = stages.enter(now, letter_job, to, now)
  store.emit(now, 'put', jid, to, job.klass, state, tags.fact(job, nil))
  tags.assign(letter_job, tags.of(job))
  jobs.place(letter_job, state)
end

-- Delete a job past its retention, unless it has dependents or dependencies.
local function delete(now, job)
  if job.waited_for ~= '0' or job.waits ~= '0' then
    failures.keep(job)
    return
  end
  store.emit(now, 'retired', job.jid)
  if job.state == 'failed' then
    stats.recovered(job.ended_at, job.queue)
  end
  jobs.remove(job)
end

-- Delete failed jobs past their retention: more than fail, so that the list comes down to a lowered limit.
local function retire(now)
  for _, job in ipairs(failures.expired(now, SWEEP)) do
    delete(now, job)
  end
end

-- Delete ended jobs whose own retention is over, up to `most`; say whether there were any.
function failure.retire_due(now, most)
  local found = retention.due(now, most)
  for i = 1, #found do
    delete(now, found[i])
  end
  return #found > 0
end

-- Fail a lifted job into a group. `ended` is the token of the lease, if its holder itself failed the job: a holder that
-- lost the lease must not find its token in the history.
function failure.fail_job(now, job, group, message, ended)
  budget.spend(budget.FAILURE)
  store.emit(now, 'failed', job.jid, job.queue, job.worker, job.token, group)
  history.add(now, job, 'failed', ended or 0, group)
  stats.failed(now, job.queue)
  records.set_failure(job, group, message, now, job.worker)
  job.worker, job.grant = '', ''
  job.expires_at = 0
  job.ended_at = now
  options.drop(job, 'ttl_ms')
  options.drop(job, 'revoked')
  jobs.place(job, 'failed')
  if job.waited_for ~= '0' then
    cascade.push(job)
  end
  cleanup.clean_up(now, job)
  write_letter(now, job)
  retire(now)
  failure.retire_due(now, SWEEP)
end

-- Whether a job was revoked while it was running.
function failure.is_revoked(job)
  return options.get(job, 'revoked') ~= nil
end

-- Fail a lifted job that was revoked, whatever else would have become of it.
function failure.fail_revoked(now, job, message, ended)
  local said = message and message ~= '' and message or 'It was revoked.'
  failure.fail_job(now, job, 'revoked-' .. job.queue, said, ended)
end

-- Fail a lifted job that has expired.
local function expire(now, job)
  failure.fail_job(now, job, 'expired-' .. job.queue, 'It did not begin within its time to live.')
end

-- Fail a job that is not running, or mark a running one as revoked; give its state.
function failure.revoke_one(now, job)
  if job.state == 'complete' or job.state == 'failed' or failure.is_revoked(job) then
    return job.state
  end
  store.emit(now, 'revoked', job.jid, job.queue, job.worker, job.token)
  if job.state == 'running' then
    options.set(job, 'revoked', 1)
    return 'running'
  end
  dependencies.unlink(job, dependencies.of(job))
  jobs.lift(job)
  failure.fail_revoked(now, job)
  return 'failed'
end

-- Fail the expired jobs of a queue, up to `most` and half of the budget; end as many dependencies.
function failure.expire_due(now, queue, most)
  local room, kept, some = most, math.floor(budget.room() / 2), false
  for _, job in ipairs(ttl.due(queue, now, most)) do
    if not budget.take(concurrency.ending(job), kept, some) then
      break
    end
    some = true
    if job.waits ~= '0' then
      local ended = dependencies.of(job)
      ended = {unpack(ended, 1, math.min(#ended, room))}
      dependencies.unlink(job, ended)
      room = room - #ended
    end
    if job.waits == '0' then
      jobs.lift(job)
      expire(now, job)
    end
  end
end

-- Fail the expired ones of some lifted jobs; give the others.
function failure.expire_taken(now, taken)
  if not options.of_any(taken) then
    return taken
  end
  local left = {}
  for i = 1, #taken do
    local job = taken[i]
    if ttl.is_over(now, job) then
      parked.unreserve(job)
      parked.forget_throttle(job)
      expire(now, job)
    else
      left[#left + 1] = job
    end
  end
  return left
end

-- Failed jobs: listing them by group, and retrying them.

local recover = {}

-- List the groups by name.
function recover.failed_groups(_, op)
  return failures.groups(op.offset, op.count)
end

-- List the jobs of a group, latest first.
function recover.failed(_, op)
  return {failures.page(op.group, op.offset, op.count)}
end

-- The failed jobs among the named ones; a list has no cursor.
local function named(now, op)
  if op.cursor ~= '' then
    refusals.refuse('BAD_ARGUMENT', 'retry_many', 'cursor')
  end
  local wanted, found, met, units = selection.filter(op, 'failed'), {}, {}, 0
  for _, jid in ipairs(op.jids) do
    local job = not met[jid] and jobs.get(jid)
    met[jid] = true
    if job and #found < op.count and jobs.fits(now, job, wanted) then
      found[#found + 1] = job
      units = units + budget.weight(job)
    end
  end
  budget.check('retry_many', #found, units)
  return found, ''
end

-- Let a failed job begin anew in a queue.
local function retry(now, job, queue)
  queues.register(now, queue)
  stats.recovered(job.ended_at, job.queue)
  jobs.lift(job)
  local state = stages.enter(now, job, queue, now)
  store.emit(now, 'unfailed', job.jid, queue, job.group, state)
  concurrency.place(now, job, state)
end

-- Retry failed jobs, in their own queues or in another one.
function recover.retry_many(now, op)
  local found, cursor
  if not op.jids then
    found, cursor = selection.find(now, 'retry_many', op, selection.filter(op, 'failed'))
  else
    found, cursor = named(now, op)
  end

  return selection.bulk(op.preview, found, cursor, function(job)
    retry(now, job, op.to or job.queue)
    return true
  end)
end

-- The put that starts the original job of a dead letter again.
local function again(letter_job, origin)
  return {
    queue = options.get(letter_job, 'origin_queue'),
    jid = origin,
    klass = letter_job.klass,
    data = letter_job.apart == '1' and records.data(letter_job) or letter_job.data,
    priority = letter_job.priority,
    delay_ms = 0,
    retries = letter_job.retries,
    tags = tags.of(letter_job),
    lifo = options.get(letter_job, 'lifo') ~= nil,
    lease_ms = options.get(letter_job, 'lease_ms'),
    timeout_ms = options.get(letter_job, 'timeout_ms'),
    dead_queue = options.get(letter_job, 'origin_dead_queue'),
    request = '',
    named = true,
  }
end

-- Put the original job of a dead letter again, and delete the letter.
function recover.replay(now, op)
  local letter_job = jobs.find(op.jid)
  local origin = options.get(letter_job, 'origin')
  if not origin then
    refusals.refuse('NOT_A_DEAD_LETTER', op.jid)
  end
  if letter_job.state == 'complete' then
    refusals.refuse('WRONG_STATE', op.jid, letter_job.state)
  end
  local job = jobs.get(origin)
  if job and job.state ~= 'failed' then
    refusals.refuse('WRONG_STATE', origin, job.state)
  end
  for _, dependent in ipairs(dependencies.dependents(letter_job)) do
    refusals.refuse('HAS_DEPENDENTS', op.jid, dependent)
  end
  dependencies.check_bounded(letter_job)

  local anew = again(letter_job, origin)
  remove.cancel(now, {jids = {op.jid}, cascade = false})
  return put.put(now, anew)
end

-- Failed jobs: looking at them by group, and trying them again.

local recover = {}

-- List the groups by name.
function recover.failed_groups(_, op)
  return failures.groups(op.offset, op.count)
end

-- List the jobs of a group, latest first.
function recover.failed(_, op)
  return {failures.page(op.group, op.offset, op.count)}
end

-- Let a failed job begin anew in a queue.
local function unfail(now, job, queue)
  queues.register(now, queue)
  stats.recovered(job.ended_at, job.queue)
  jobs.lift(job)
  local state = stages.enter(now, job, queue, 0)
  store.emit(now, 'unfailed', job.jid, queue, job.group, state)
  concurrency.place(now, job, state)
end

-- Move the longest failed jobs of a group to a queue.
function recover.unfail(now, op)
  local moved = failures.oldest(op.group, op.count)
  for _, job in ipairs(moved) do
    unfail(now, job, op.queue)
  end
  return #moved
end

-- Put failed jobs back into their own queues.
function recover.retry_many(now, op)
  local found, cursor = selection.find(now, 'retry_many', op, selection.filter(op, 'failed'))

  return selection.bulk(op.preview, found, cursor, function(job)
    unfail(now, job, job.queue)
    return true
  end)
end

-- The put that begins the job anew of which this is a dead letter.
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

-- Put the job of a dead letter anew, and delete the letter.
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

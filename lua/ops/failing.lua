-- Failed jobs: looking at them by group, and trying them again.

local failing = {}

-- List the groups by name.
function failing.failed_groups(_, op)
  return failures.groups(op.offset, op.count)
end

-- List the jobs of a group, latest first.
function failing.failed(_, op)
  return {failures.page(op.group, op.offset, op.count)}
end

-- Let a failed job begin anew in a queue.
local function unfail(now, job, queue)
  queues.register(now, queue)
  stats.recovered(job.ended_at, job.queue)
  jobs.lift(job)
  local state = putting.enter(now, job, queue, 0)
  store.emit(now, 'unfailed', job.jid, queue, job.group, state)
  lining.place(now, job, state)
end

-- Move the longest failed jobs of a group to a queue.
function failing.unfail(now, op)
  local moved = failures.oldest(op.group, op.count)
  for _, job in ipairs(moved) do
    unfail(now, job, op.queue)
  end
  return #moved
end

-- Put failed jobs back into their own queues.
function failing.retry_many(now, op)
  local found, cursor = searching.find(now, 'retry_many', op, searching.filter(op, 'failed'))

  return searching.bulk(op.preview, found, cursor, function(job)
    unfail(now, job, job.queue)
    return true
  end)
end

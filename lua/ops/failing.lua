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

-- Move the longest failed jobs of a group to a queue.
function failing.unfail(now, op)
  local moved = failures.oldest(op.group, op.count)
  for _, job in ipairs(moved) do
    queues.register(now, op.queue)
    stats.recovered(job.ended_at, job.queue)
    jobs.lift(job)
    local state = putting.enter(now, job, op.queue, 0)
    store.emit(now, 'unfailed', job.jid, op.queue, op.group, state)
    lining.place(now, job, state)
  end
  return #moved
end

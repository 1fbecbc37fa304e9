-- Tags, and the list of tracked jobs.

local tag = {}

-- Add tags to a job; those that it has are skipped.
function tag.tag_add(now, op)
  local job = jobs.find(op.jid)
  tags.check_room('job ' .. job.jid, tags.of(job), op.tags)

  for _, tag in ipairs(op.tags) do
    if not tags.has(job, tag) then
      store.emit(now, 'tagged', job.jid, tag)
      tags.add(job, tag)
    end
  end
  return tags.of(job)
end

-- Remove tags from a job.
function tag.tag_remove(now, op)
  local job = jobs.find(op.jid)

  for _, tag in ipairs(op.tags) do
    if tags.has(job, tag) then
      store.emit(now, 'untagged', job.jid, tag)
      tags.remove(job, tag)
    end
  end
  return tags.of(job)
end

-- List the jobs that have a tag.
function tag.tagged(_, op)
  return {tags.page(op.tag, op.offset, op.count)}
end

-- List the most used tags.
function tag.top_tags(_, op)
  return tags.top(op.offset, op.count)
end

-- Add a job to the list of tracked jobs.
function tag.track(now, op)
  local job = jobs.find(op.jid)

  if tracking.is_tracked(job.jid) then
    return 0
  end
  store.emit(now, 'tracked', job.jid)
  tracking.add(job.jid)
  return 1
end

-- Remove a job from the list of tracked jobs.
function tag.untrack(now, op)
  if not tracking.is_tracked(op.jid) then
    return 0
  end
  store.emit(now, 'untracked', op.jid)
  tracking.discard(op.jid)
  return 1
end

-- Show the tracked jobs, and the ids of those that no longer exist.
function tag.tracked(now, op)
  local jids, units = tracking.page(op.offset, op.count), 0
  records.prefetch(jids)
  for _, jid in ipairs(jids) do
    local job = jobs.get(jid)
    units = units + (job and budget.weight(job) or 0)
  end
  budget.check('tracked', #jids, units)
  local shown, expired = jobs.views(now, jids), {}
  for _, jid in ipairs(jids) do
    if not jobs.get(jid) then
      expired[#expired + 1] = jid
    end
  end
  return {shown, expired}
end

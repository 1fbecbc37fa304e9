-- The tracked jobs, in the order of tracking. Tracking outlives the job: its id is then listed as expired. Their number
-- is among the counters, so that no command is needed while nothing is tracked.

local tracking = {}

-- Whether a job is tracked.
function tracking.is_tracked(jid)
  return store.tracks and writes.fetch('ZSCORE', keys.tracked, jid) ~= false
end

-- Track a job. The current sequence is its position.
function tracking.add(jid)
  store.add(keys.tracked, store.last(), jid)
  store.bound('tracked', store.bounds().tracked + 1)
end

-- Stop tracking a job.
function tracking.discard(jid)
  store.remove(keys.tracked, jid)
  store.bound('tracked', store.bounds().tracked - 1)
end

-- A page of the tracked jobs.
function tracking.page(offset, count)
  return writes.fetch('ZRANGE', keys.tracked, offset, offset + count - 1)
end

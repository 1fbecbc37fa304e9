-- The tracked jobs, in order of tracking. Tracking outlives the job: its id is then listed as expired. The counters hold
-- how many there are, so that nothing is asked while nothing is tracked.

local tracking = {}

-- Whether a job is tracked.
function tracking.is_tracked(jid)
  return store.counters().tracked > 0 and store.sorted('ZSCORE', keys.of('tracked'), jid) ~= false
end

-- Track a job. The current sequence is its place.
function tracking.add(jid)
  local counters = store.counters()
  store.add(keys.of('tracked'), counters.seq, jid)
  counters.tracked = counters.tracked + 1
end

-- Stop tracking a job.
function tracking.discard(jid)
  local counters = store.counters()
  store.remove(keys.of('tracked'), jid)
  counters.tracked = counters.tracked - 1
end

-- A page of the tracked jobs.
function tracking.page(offset, count)
  return store.sorted('ZRANGE', keys.of('tracked'), offset, offset + count - 1)
end

-- Complete jobs, and how long they are kept.
--
-- The counters hold two bounds: a sequence and a moment before which nothing can be past keeping. For every completion
-- takes at least one sequence, so with room for n more none can be too many before n sequences have passed. So most
-- completions do not look.

local completed = {}

local NEVER = 99999999999999

function completed.add(job)
  store.add(keys.of('completed'), job.ended_at, keys.member(job.seq, job.jid))
  local counters = store.counters()
  counters.sweep_at = math.min(counters.sweep_at, job.ended_at + config.value('jobs-history'))
end

function completed.discard(job)
  store.remove(keys.of('completed'), keys.member(job.seq, job.jid))
end

-- Look anew at the next completion: a limit, or the oldest job, has changed.
function completed.look_again()
  local counters = store.counters()
  counters.sweep_seq, counters.sweep_at = 0, 0
end

-- The oldest complete jobs that are past jobs-history or beyond jobs-history-count.
function completed.expired(now, most)
  local counters = store.counters()
  if counters.seq < counters.sweep_seq and now < counters.sweep_at then
    return {}
  end
  local key = keys.of('completed')
  local age = config.value('jobs-history')
  local surplus = store.sorted('ZCARD', key) - config.value('jobs-history-count')
  local oldest = redis.call('ZRANGE', key, 0, most, 'WITHSCORES')
  local expired, at = {}, 1
  while #expired < most and oldest[at] and (#expired < surplus or tonumber(oldest[at + 1]) <= now - age) do
    expired[#expired + 1] = jobs.load(keys.jid_of(oldest[at]))
    at = at + 2
  end
  counters.sweep_seq = counters.seq + math.max(#expired - surplus, 0)
  counters.sweep_at = oldest[at] and math.max(tonumber(oldest[at + 1]) + age, 0) or NEVER
  return expired
end

-- How many complete jobs there are, and a page of them, latest first.
function completed.page(offset, count)
  local key = keys.of('completed')
  return store.sorted('ZCARD', key), failures.latest(key, offset, count)
end

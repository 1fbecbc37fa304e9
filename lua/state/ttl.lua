-- Times to live: until which moment a job may begin. What holds of them is told in qmodel/model/state/ttl.py.
--
-- The queue's state holds a moment before which nothing can have expired (state/queues.lua), so a queue in which no job
-- has a time to live is asked for nothing more.

local ttl = {}

local PENDING = {scheduled = true, depends = true, waiting = true, throttled = true}

-- The moment until which a job may begin, if there is one and it has not begun.
local function moment_of(job)
  local ttl = options.get(job, 'ttl_ms')
  return ttl and PENDING[job.state] and job.put_at + ttl
end

local function list_of(name)
  return keys.queue(name, '-expires')
end

-- Enter a job that was placed, if it has a time to live.
function ttl.enter(job)
  local moment = moment_of(job)
  if moment then
    store.add(list_of(job.queue), moment, keys.member(job.seq, job.jid))
    queues.expect_end(job.queue, moment + 1)
  end
end

-- Strike a job that is about to be lifted, if it stands here. It may have been entered in this very step, so what was
-- gathered for the list is written before.
function ttl.leave(job)
  if moment_of(job) then
    store.sorted('ZREM', list_of(job.queue), keys.member(job.seq, job.jid))
  end
end

-- Whether a job that has not begun may no longer do so.
function ttl.is_over(now, job)
  local ttl = options.get(job, 'ttl_ms')
  return ttl and job.put_at + ttl < now
end

-- The jobs of a queue that have expired, by the moments until which they lived.
function ttl.due(name, now, most)
  local queue = queues.of(name)
  if queue.expires > now then
    return {}
  end
  local found = store.sorted('ZRANGEBYSCORE', list_of(name), '-inf', now - 1, 'LIMIT', 0, most)
  for i, member in ipairs(found) do
    found[i] = keys.jid_of(member)
  end
  records.prefetch(found)
  for i, jid in ipairs(found) do
    found[i] = jobs.load(jid)
  end
  return found
end

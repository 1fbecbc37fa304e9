-- Time to live: the time until which a job may start. The rules are described in qmodel/model/state/ttl.py.
--
-- The queue's state holds a time before which nothing can have expired (state/queues.lua), so a queue without such jobs
-- costs no further command.

local ttl = {}

local PENDING = {scheduled = true, depends = true, waiting = true, throttled = true}

-- The time until which a job may start, if it has one and has not started.
local function moment_of(job)
  local ttl = options.get(job, 'ttl_ms')
  return ttl and PENDING[job.state] and job.put_at + ttl
end

local function list_of(name)
  return keys.queue(name, '-expires')
end

-- List a job that was placed, if it has a time to live.
function ttl.enter(job)
  local moment = moment_of(job)
  if moment then
    store.add(list_of(job.queue), moment, keys.member(job.seq, job.jid))
    queues.expect_end(job.queue, moment + 1)
  end
end

-- Remove a job that is about to be lifted from the list. It may have been entered in this very step, so buffered writes
-- are written first.
function ttl.leave(job)
  if moment_of(job) then
    writes.put_off('ZREM', list_of(job.queue), keys.member(job.seq, job.jid))
  end
end

-- Whether a job that has not started may no longer start.
function ttl.is_over(now, job)
  local ttl = options.get(job, 'ttl_ms')
  return ttl and job.put_at + ttl < now
end

-- The expired jobs of a queue, earliest first, as far as the budget goes: the caller spends what each one costs.
function ttl.due(name, now, most)
  local queue = queues.of(name)
  if queue.expires > now then
    return {}
  end
  local found = writes.fetch('ZRANGEBYSCORE', list_of(name), '-inf', now - 1, 'LIMIT', 0, most)
  return queues.load_some(list_of(name), found, nil, 1)
end

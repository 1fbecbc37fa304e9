-- Parked jobs: for each queue, the jobs that wait at each throttle. The rules are described in
-- qmodel/model/state/parked.py.
--
-- The throttles of a queue with parked or admitted jobs are one sorted set, ordered by the time at which each must be
-- checked. The first of these times is in the queue's state, so that a queue without parked jobs costs no command.
--
-- These sets are written directly, even if an operation buffers its writes: a job may be parked and admitted within one
-- step.

local parked = {}

local QUEUES = 100 -- how many queues of a throttle are read for all that are parked at it

-- Count a leased job in each throttle that it names, but for those that were released.
function parked.hold(job)
  for _, name in ipairs(throttles.counted(job)) do
    writes.put_off('ZADD', keys.throttle(name, '-held'), epochs.claim(job.token), job.jid)
    throttles.made(name)
  end
end

local function release(job, name)
  local last = throttles.running(name) == 1
  writes.put_off('ZREM', keys.throttle(name, '-held'), job.jid)
  local throttle = throttles.of(name)
  if throttle.concurrency > 0 then
    parked.free(name)
  end
  if last then
    throttles.forget_if_empty(name)
  end
end

-- Stop counting a job in its throttles.
function parked.release(job)
  for _, name in ipairs(throttles.counted(job)) do
    release(job, name)
  end
  local mine = throttles.own(job.queue)
  if mine then
    local throttle = throttles.of(mine)
    if throttle.concurrency > 0 then
      parked.free(mine)
    end
  end
end

-- Stop counting a leased job in one throttle before its lease ends.
function parked.release_one(job, name)
  release(job, name)
  throttles.release(job, name)
end

-- Let the queues with jobs parked at a throttle check it again, and wake a worker of each.
function parked.free(name)
  local queue = throttles.queue_of(name)
  if queue then
    queues.wake_if_ready(queue)
    return
  end
  for _, waiting in ipairs(writes.fetch('ZRANGE', keys.throttle(name, '-queues'), 0, catalogue.most - 1)) do
    parked.expect(waiting, name, 0)
    queues.wake_one(waiting)
  end
end

-- Let queues check the throttles of a family again, and wake a worker of each, if it is a family.
function parked.free_family(name)
  local left = families.is_family(name) and catalogue.most or 0
  for _, queue in ipairs(left > 0 and queues.listed(0, left) or {}) do
    local found = queues.has_parked(queue) and writes.fetch('ZRANGE', keys.queue(queue, '-gates'), 0, left - 1) or {}
    local some = false
    for _, other in ipairs(found) do
      if subjects.like(name, other) then
        parked.expect(queue, other, 0)
        some = true
      end
    end
    if some then
      queues.wake_one(queue)
    end
    left = left - #found
    if left == 0 then
      break
    end
  end
end

-- The units for letting queues check the throttles of a job again when its lease ends.
function parked.freeing(job)
  local units = 0
  if job.state ~= 'running' then
    return units
  end
  for _, name in ipairs(throttles.counted(job)) do
    local throttle = throttles.of(name)
    if throttle.concurrency > 0 then
      units = units + budget.QUEUE * math.min(writes.fetch('ZCARD', keys.throttle(name, '-queues')), catalogue.most)
    end
  end
  return units
end

-- The throttles that a pop must check, by the time since when.
function parked.due(name, now, most)
  local queue = queues.of(name)
  if queue.admits_at and queue.admits_at <= now then
    return writes.fetch('ZRANGEBYSCORE', keys.queue(name, '-gates'), '-inf', now, 'LIMIT', 0, most)
  end
  return {}
end

-- The first time at which a pop must check any throttle.
function parked.open_at(name)
  local queue = queues.of(name)
  return queue.admits_at or throttles.NEVER
end

-- Store the first of these times in the queue's state.
local function tell(queue)
  local first = writes.fetch('ZRANGE', keys.queue(queue, '-gates'), 0, 0, 'WITHSCORES')
  queues.expect_admission(queue, first[2] and tonumber(first[2]) or false)
end

local function size(queue, name, part)
  return writes.fetch('ZCARD', keys.parked(queue, name, part))
end

-- The time at which a throttle is checked, or nil if it has no entry.
local function moment_of(queue, name)
  return queues.has_parked(queue) and writes.fetch('ZSCORE', keys.queue(queue, '-gates'), name) or nil
end

local function look(queue, name, moment)
  writes.put_off('ZADD', keys.queue(queue, '-gates'), moment, name)
  tell(queue)
end

-- Make sure that a throttle has an entry.
local function entry(queue, name)
  if not moment_of(queue, name) then
    look(queue, name, throttles.NEVER)
  end
end

-- Let pops check a throttle from a given time on, if any job is parked at it.
function parked.expect(queue, name, moment)
  if moment_of(queue, name) then
    look(queue, name, size(queue, name, '-parked') > 0 and moment or throttles.NEVER)
  end
end

-- Let pops check a throttle from a given time on, or earlier if that was set before.
function parked.lower(queue, name, moment)
  parked.expect(queue, name, math.min(moment, tonumber(moment_of(queue, name))))
end

-- Follow up when a job has left: another job, which may need less, is the first now; or no job is left.
local function changed(queue, name)
  parked.expect(queue, name, 0)
  if size(queue, name, '-parked') == 0 then
    writes.put_off('ZREM', keys.throttle(name, '-queues'), queue)
    throttles.forget_if_empty(name)
    if size(queue, name, '-let') == 0 then
      writes.put_off('ZREM', keys.queue(queue, '-gates'), name)
      tell(queue)
    end
  end
end

-- The turn of a job within its priority; a job that was not parked comes last.
function parked.turn(job)
  return tonumber(options.get(job, 'parked')) or throttles.NEVER
end

-- The position of a job among those parked.
local function parked_at(job)
  return keys.member(options.get(job, 'parked'), job.jid)
end

-- The position of a job among those admitted, with its cost.
local function admitted_at(job)
  return keys.member(options.get(job, 'parked'), string.sub('000000' .. throttles.cost(job), -7) .. job.jid)
end

-- Park a job at the throttle that its option `gate` names, if it has one.
function parked.park(job)
  local name = options.get(job, 'gate')
  if name then
    entry(job.queue, name)
    writes.put_off('ZADD', keys.parked(job.queue, name, '-parked'), job.priority, parked_at(job))
    writes.put_off('ZADD', keys.throttle(name, '-queues'), 0, job.queue)
    throttles.made(name)
  end
end

-- Stop parking it.
function parked.unpark(job)
  local name = options.get(job, 'gate')
  if name then
    writes.put_off('ZREM', keys.parked(job.queue, name, '-parked'), parked_at(job))
    changed(job.queue, name)
  end
end

-- Let the next pop check the throttle at which a job is parked, because the job's position has changed.
function parked.recheck(job)
  local name = options.get(job, 'gate')
  if name then
    parked.expect(job.queue, name, 0)
  end
end

-- Remember that a throttle has admitted a ready job, if one has.
function parked.reserve(job)
  local name = options.get(job, 'gate')
  if name then
    entry(job.queue, name)
    writes.put_off('ZADD', keys.parked(job.queue, name, '-let'), job.priority, admitted_at(job))
  end
end

-- Forget that a throttle has admitted a job.
function parked.unreserve(job)
  local name = options.get(job, 'gate')
  if name then
    writes.put_off('ZREM', keys.parked(job.queue, name, '-let'), admitted_at(job))
    changed(job.queue, name)
  end
end

-- Clear the options that name a job's throttle and its turn.
function parked.forget_throttle(job)
  options.drop(job, 'gate')
  options.drop(job, 'parked')
end

-- The first jobs of a queue that are parked at a throttle.
function parked.parked(queue, name, most)
  local jids = {}
  for i, member in ipairs(writes.fetch('ZRANGE', keys.parked(queue, name, '-parked'), 0, most - 1)) do
    jids[i] = keys.jid_of(member)
  end
  records.prefetch(jids)
  for i, jid in ipairs(jids) do
    jids[i] = jobs.load(jid)
  end
  return jids
end

-- The jobs that are parked at a throttle, the first ones in each of its first queues: since when, and their ids.
function parked.waiting(name, most)
  local found = {}
  for _, queue in ipairs(writes.fetch('ZRANGE', keys.throttle(name, '-queues'), 0, QUEUES - 1)) do
    for _, member in ipairs(writes.fetch('ZRANGE', keys.parked(queue, name, '-parked'), 0, most - 1)) do
      found[#found + 1] = {tonumber(string.sub(member, 1, 14)), keys.jid_of(member)}
    end
  end
  return found
end

-- How many admitted jobs of a queue still wait at a throttle, and their cost: those of a better priority, or with an
-- earlier turn. All of them, if the turn is NEVER and the priority '+inf'.
function parked.admitted(queue, name, priority, before)
  if not queues.has_parked(queue) then
    return {0, 0}
  end
  local key = keys.parked(queue, name, '-let')
  local found = writes.fetch('ZRANGEBYSCORE', key, '-inf', priority, 'WITHSCORES', 'LIMIT', 0, catalogue.most)
  local count, spent = 0, 0
  for i = 1, #found, 2 do
    if tonumber(string.sub(found[i], 1, 14)) < before or tonumber(found[i + 1]) < tonumber(priority) then
      count = count + 1
      spent = spent + tonumber(string.sub(found[i], 15, 21))
    end
  end
  return {count, spent}
end

-- Whether another job of its queue is parked at a throttle, with a better priority or an earlier turn.
function parked.is_behind(job, name)
  if not queues.has_parked(job.queue) then
    return false
  end
  local first = writes.fetch('ZRANGE', keys.parked(job.queue, name, '-parked'), 0, 0, 'WITHSCORES')
  if not first[1] then
    return false
  end
  local ahead = tonumber(first[2]) - tonumber(job.priority)
  return ahead < 0 or (ahead == 0 and tonumber(string.sub(first[1], 1, 14)) < parked.turn(job))
end

-- How many jobs of its queue come before a job that is parked at a throttle.
function parked.ahead(job)
  local name = options.get(job, 'gate')
  if not name or job.state ~= 'throttled' then
    return 0
  end
  return writes.fetch('ZRANK', keys.parked(job.queue, name, '-parked'), parked_at(job))
end

-- How many jobs are parked at a throttle, in the first 1000 of its queues.
function parked.count_parked(name)
  local count = 0
  for _, queue in ipairs(writes.fetch('ZRANGE', keys.throttle(name, '-queues'), 0, catalogue.most - 1)) do
    count = count + size(queue, name, '-parked')
  end
  return count
end

-- Queues: five sorted sets of jobs each, pauses, and the count of idle workers.
--
-- A queue is on the list from its first put until it is forgotten. A worker that found nothing counts as idle. A job
-- that becomes ready turns one idle worker into one wake-up, an element of a list on which idle workers block, so that
-- a thousand waiting workers do not stampede after one job.
--
-- The due bound is a time before which no lease can have expired, and no scheduled job and no run can be due: an
-- earlier pop checks none of them. Everything that sets an earlier time lowers it; the check for due jobs sets it anew.
-- Beside it are the exact due time of the first run of a recurring job, if there is one (state/schedules.lua), and a
-- time before which none of its jobs can have expired, if any can (state/ttl.lua).

local queues = {}

local FIRST = '-inf' -- the position of a stalled job among the locks: before every expired lease
local IDLE_MOST = 1000
local NEVER = 99999999999999
local DAY_MS = 86400000
local UNKNOWN = 1000000 -- more durations than are ever pending

queues.NO_TIME = 99999999999998 -- the due time of something that is not due: later than any moment

local STATE = '^(%d*)\t(%d)\t(%d+)\t(%d+)\t?(%d*)\t?(%d*)\t?(%d*)$'
local NOTHING = '\t0\t0\t99999999999999'

-- ---- a queue's state: first seen, paused, idle (as text), due, recur, expires (numbers), admits_at (number or false)

-- What a state contained is kept from call to call, with the keys of the queue, until the text changes. A variable that
-- holds it is called `queue`: as with a job's record, the bundle replaces its fields by list indexes.
queues.fields = {
  'name', 'step', 'text', 'first_seen', 'paused', 'idle', 'due', 'recur', 'expires', 'admits_at', 'state_key', 'work_key',
  'locks_key', 'scheduled_key', 'row', 'lease_ms', 'is_bare', 'put_row', 'pop_row', 'day', 'day_end', 'waits_key',
  'pending_waits', 'runs_key', 'pending_runs',
}

local MOST = 2000 -- the most cached queues of all namespaces

queues.known = {} -- name -> its cached state
local count = 0 -- how many of them were made, in all namespaces
local scores = false -- jid -> the score of a job that this operation has read from the order, if it stands by its age
local step = 0 -- counts operations; a cached state is valid if it was read in the current one

-- Forget the cached states of this namespace.
function queues.unknown()
  queues.known = {}
end

-- Exchange what is kept of one namespace for that of another one (state/keys.lua).
function queues.keep(namespace)
  namespace.queues = queues.known
end

function queues.recall(namespace)
  queues.known = namespace.queues
end

local function create(name)
  if count == MOST then
    keys.forget_others()
    config.forget_queues()
    queues.known, count = {}, 0
  end
  local queue = {
    name, 0, false, '', '0', '0', NEVER, NEVER, NEVER, false, keys.queue(name, '-state'), keys.queue(name, '-work'),
    keys.queue(name, '-locks'), keys.queue(name, '-scheduled'), 0, 0, false, 0, 0, -1, 0, false, 0, false, 0,
  }
  queues.known[name], count = queue, count + 1
  return queue
end

local function meet(queue, text)
  if queue.text ~= text then
    local first_seen, paused, idle, due, recur, expires, admits_at = string.match(text or NOTHING, STATE)
    queue.text, queue.first_seen, queue.paused, queue.idle, queue.due = text, first_seen, paused, idle, tonumber(due)
    queue.recur, queue.expires, queue.admits_at =
      tonumber(recur) or NEVER, tonumber(expires) or NEVER, tonumber(admits_at) or false
    queue.put_row, queue.pop_row = 0, 0
  end
  queue.step = step
end

-- The key of a queue's state.
function queues.state_key(name)
  local queue = queues.known[name] or create(name)
  return queue.state_key
end

-- The key of a queue's leases.
function queues.locks_key(name)
  local queue = queues.known[name] or create(name)
  return queue.locks_key
end

-- Begin a row: know what the options say of a queue, how long a lease lasts, and whether nothing else is done for a job,
-- because nothing is recorded, its jobs take no turns and do not age, and it has no throttle of its own (ops/bare.lua).
local function learn(queue)
  queue.row, queue.lease_ms, queue.pending_waits, queue.pending_runs = store.row, config.heartbeat(queue.name), UNKNOWN, UNKNOWN
  queue.is_bare = not (journal.is_on() or config.is_fair(queue.name) or config.owns(queue.name) or config.aging(queue.name) > 0)
end

-- Mark the row in which the state of a queue leaves puts and pops bare (ops/bare.lua).
local function mark(queue)
  local is_bare = queue.is_bare and queue.row == store.row
  queue.put_row = is_bare and queue.first_seen ~= '' and queue.idle == '0' and store.row or 0
  queue.pop_row = is_bare and queue.paused == '0' and not queue.admits_at and store.row or 0
end

-- Leave pops from a queue to ops/plain.lua until its next call has read the queue.
function queues.unmark(queue)
  queue.pop_row = 0
end

-- Know how many durations of a day are pending in a list of a queue, until the row ends.
function queues.know_pending(name, kind, day, key, size)
  local queue = queues.known[name] or create(name)
  if queue.row ~= store.row then
    learn(queue)
  end
  if queue.day ~= day then
    queue.day, queue.day_end, queue.pending_waits, queue.pending_runs = day, day + DAY_MS, UNKNOWN, UNKNOWN
  end
  if kind == 'wait' then
    queue.waits_key, queue.pending_waits = key, size
  else
    queue.runs_key, queue.pending_runs = key, size
  end
end

-- Forget how many durations are pending in the lists of a queue.
function queues.forget_pending(name)
  local queue = queues.known[name]
  if queue then
    queue.pending_waits, queue.pending_runs = UNKNOWN, UNKNOWN
  end
end

-- Forget which states the previous operation has read; know one, if its text was read already, and give it.
function queues.begin(name, text)
  step = step + 1
  scores = false
  if name then
    local queue = queues.known[name] or create(name)
    if queue.text ~= text then
      meet(queue, text)
    end
    if queue.row ~= store.row then
      learn(queue)
    end
    mark(queue)
    queue.step = step
    return queue
  end
end

-- A queue to read; an empty one if it is unknown.
function queues.of(name)
  local queue = queues.known[name] or create(name)
  if queue.step ~= step then
    meet(queue, store.read(queue.state_key))
  end
  return queue
end

-- Read the states of several queues with one command.
function queues.prefetch(names)
  local wanted = {}
  for i, name in ipairs(names) do
    wanted[i] = queues.state_key(name)
  end
  for i, text in ipairs(store.read_all(wanted)) do
    meet(queues.known[names[i]] or create(names[i]), text)
  end
end

local function write(queue)
  queue.text = queue.first_seen .. '\t' .. queue.paused .. '\t' .. queue.idle .. '\t' .. store.text(queue.due)
  if queue.recur < NEVER or queue.expires < NEVER or queue.admits_at then
    queue.text = queue.text .. '\t' .. (queue.recur < NEVER and store.text(queue.recur) or '')
  end
  if queue.expires < NEVER or queue.admits_at then
    queue.text = queue.text .. '\t' .. (queue.expires < NEVER and store.text(queue.expires) or '')
  end
  if queue.admits_at then
    queue.text = queue.text .. '\t' .. store.text(queue.admits_at)
  end
  store.write(queue.state_key, queue.text)
  mark(queue)
end

local function lower_due(queue, moment)
  if moment < queue.due then
    queue.due = moment
    write(queue)
  end
end

-- Put a queue on the list, unless it is listed.
function queues.register(now, name)
  local queue = queues.of(name)
  if queue.first_seen == '' then
    queue.first_seen = store.text(now)
    write(queue)
    store.add(keys.queues, now, name)
  end
end

-- Remove a queue, with its pauses and idle workers; say whether it was listed or had pauses.
function queues.forget(name)
  local queue = queues.of(name)
  local was_there = queue.first_seen ~= '' or queue.paused == '1'
  store.write(keys.queue(name, '-wake'), false)
  if queue.paused == '1' then
    store.write(keys.queue(name, '-pauses'), false)
  end
  if queue.first_seen ~= '' then
    store.remove(keys.queues, name)
  end
  meet(queue, false)
  store.write(queue.state_key, false)
  return was_there
end

-- A page of the names of the listed queues, first used first.
function queues.listed(offset, count)
  return writes.fetch('ZRANGE', keys.queues, offset, offset + count - 1)
end

local function size(name, part)
  return writes.fetch('ZCARD', keys.queue(name, part))
end

-- How many jobs a queue has, in any state.
function queues.length(name)
  return size(name, '-work') + size(name, '-scheduled') + size(name, '-depends') + size(name, '-locks')
    + size(name, '-throttled')
end

-- Turn idle workers into wake-ups: one for each job that they may get now.
function queues.wake(queue, most)
  local woken = math.min(tonumber(queue.idle), most)
  queue.idle = store.text(queue.idle - woken)
  write(queue)
  for _ = 1, woken do
    writes.put_off('RPUSH', keys.queue(queue.name, '-wake'), '1')
  end
end

-- Whether a queue has pauses, expired ones included (state/pauses.lua).
function queues.has_pauses(name)
  local queue = queues.of(name)
  return queue.paused == '1'
end

-- Record whether a queue has pauses.
function queues.set_pauses(name, paused)
  local queue = queues.of(name)
  if queue.paused ~= paused then
    queue.paused = paused
    write(queue)
  end
end

-- Wake idle workers for everything that a queue may have, because its last pause has ended.
function queues.resume(name)
  queues.wake(queues.of(name), queues.length(name) + schedules.size(name))
end

-- ---- lists of jobs

-- The position of a ready job among those of its priority. In a fair queue a turn is in place of the time.
function queues.rank(job)
  if job.options ~= '' then
    local turn = options.get(job, 'turn')
    if turn then
      return keys.ready_member(turn, job.seq, job.jid)
    elseif options.get(job, 'lifo') then
      return keys.lifo_member(job.ready_at, job.seq, job.jid)
    end
  end
  return keys.ready_member(job.ready_at, job.seq, job.jid)
end

-- The score of the place that a job gets in the order of its queue when it becomes ready.
function queues.place(job)
  local rate = store.config and config.aging(job.queue) or 0
  if rate == 0 then
    return job.priority
  end
  return aging.first_number(rate, job.priority, job.options ~= '' and options.get(job, 'turn') or job.ready_at)
end

-- Note which of some members of the order, each before its score, stand by their age.
local function note_scores(members)
  for i = 2, #members, 2 do
    local by_age = aging.is_by_age(members[i])
    if scores or by_age then
      scores = scores or {}
      scores[keys.ready_jid_of(members[i - 1])] = by_age and members[i] or nil
    end
  end
end

-- The score of the place where a ready job stood when it was read from the order.
function queues.standing(job)
  return scores and scores[job.jid] or job.priority
end

-- The time or turn that orders the first ready job of a priority; nil if none is, or it is put first.
function queues.first(name, priority)
  local found = writes.fetch('ZRANGEBYSCORE', keys.queue(name, '-work'), priority, priority, 'LIMIT', 0, 1)
  local at = found[1] and keys.ready_rank(found[1]) or 0
  return at > 0 and at or nil
end

-- Give a job a turn if its queue is fair; one that was made the first of its priority needs none.
local function take_turn(job)
  if config.is_fair(job.queue) and tonumber(job.ready_at) > 0 then
    turns.take(job, queues.first(job.queue, job.priority))
  elseif job.options ~= '' then
    options.drop(job, 'turn')
  end
end

-- Make a job ready, and wake a worker for it.
function queues.push(job)
  local queue = queues.of(job.queue)
  if job.options ~= '' or store.config then
    take_turn(job)
  end
  store.add(queue.work_key, queues.place(job), queues.rank(job))
  if queue.idle ~= '0' then
    queues.wake(queue, 1)
  end
end

-- Take a job out of the order.
function queues.pull(job)
  store.remove(keys.queue(job.queue, '-work'), queues.rank(job))
  if job.options ~= '' then
    turns.give_back(job)
  end
end

-- Put a job on the schedule. If it is the first, wake a worker that sleeps until a later time, or for ever.
function queues.schedule(job)
  local queue, member = queues.of(job.queue), keys.member(job.seq, job.jid)
  store.add(queue.scheduled_key, job.ready_at, member)
  lower_due(queue, tonumber(job.ready_at))
  if queue.idle ~= '0' and writes.fetch('ZRANGE', queue.scheduled_key, 0, 0)[1] == member then
    queues.wake(queue, 1)
  end
end

-- Take a job off the schedule.
function queues.unschedule(job)
  store.remove(keys.queue(job.queue, '-scheduled'), keys.member(job.seq, job.jid))
end

-- List a job that waits for other jobs.
function queues.park(job)
  store.add(keys.queue(job.queue, '-depends'), job.put_at, keys.member(job.seq, job.jid))
end

-- Remove a job from the list of those that wait for other jobs.
function queues.unpark(job)
  store.remove(keys.queue(job.queue, '-depends'), keys.member(job.seq, job.jid))
end

-- List a ready job that is parked.
function queues.throttle(job)
  store.add(keys.queue(job.queue, '-throttled'), job.ready_at, keys.member(job.seq, job.jid))
end

-- Remove a job from the list of parked ones.
function queues.unthrottle(job)
  writes.put_off('ZREM', keys.queue(job.queue, '-throttled'), keys.member(job.seq, job.jid)) -- perhaps parked in this very step
end

-- Enter a lease, or a stalled job, and wake a worker for that one.
function queues.lock(job)
  local queue = queues.of(job.queue)
  local stalled = job.state == 'stalled'
  store.add(queue.locks_key, stalled and FIRST or job.expires_at, keys.lease_member(job.seq, job.jid))
  if stalled then
    queues.wake(queue, 1)
  end
  lower_due(queue, stalled and 0 or tonumber(job.expires_at))
end

-- Remove a lease.
function queues.unlock(job)
  local queue = queues.known[job.queue] or create(job.queue)
  store.remove(queue.locks_key, keys.lease_member(job.seq, job.jid))
end

-- Move the end of a lease.
function queues.renew(job, expires_at)
  queues.unlock(job)
  job.expires_at = expires_at
  queues.lock(job)
end

-- ---- taking

local function jids_of(members)
  local jids = {}
  for i, member in ipairs(members) do
    jids[i] = keys.jid_of(member)
  end
  return jids
end

-- The ids of ready jobs; every `step`-th entry is a member.
local function ready_jids_of(members, step)
  local jids = {}
  for i = 1, #members, step do
    jids[#jids + 1] = keys.ready_jid_of(members[i])
  end
  return jids
end

-- Load the jobs of a list by their ids with one command. What has no record is left out, and dropped from the list, if
-- this call may write.
local function load(key, members, jids, step)
  if #jids > 1 then
    records.prefetch(jids)
  end
  local found = {}
  for i = 1, #jids do
    local job = records.get(jids[i])
    if job then
      found[#found + 1] = job
    elseif store.reads then
      records.missing(jids[i])
    else
      writes.drop(key, members[(i - 1) * step + 1], jids[i])
    end
  end
  return found
end

-- Load jobs from members of the order; every `step`-th entry is a member.
local function load_ready(key, members, step)
  if #members == step then
    local job = records.get(keys.ready_jid_of(members[1]))
    if job then
      return {job}
    end
  end
  return load(key, members, ready_jids_of(members, step), step)
end

-- Load the first jobs of a list, of which every `step`-th entry is a member, for a caller that spends what each one costs,
-- and stops where the budget ends; or `all` of them, for one that takes them in another order, or all.
function queues.load_some(key, members, jids, step, all)
  jids = jids or jids_of(members)
  if all then
    return load(key, members, jids, step)
  end
  for i = budget.reach(jids) + 1, #jids do
    jids[i] = nil
  end
  return load(key, members, jids, step)
end

local function until_(key, moment, most)
  return writes.fetch('ZRANGEBYSCORE', key, '-inf', moment, 'LIMIT', 0, most)
end

-- Put members that were taken out of the order back, from one on, and forget them.
local function leave(key, popped, from)
  for i = from, #popped, 2 do
    writes.put_off('ZADD', key, popped[i + 1], popped[i])
  end
  for i = #popped, from, -1 do
    popped[i] = nil
  end
end

-- Take the next ready jobs out of the order; `keep_taken` comes next. Those that the budget cannot reach stay.
function queues.take(name, count_)
  if count_ == 0 then
    return {}
  end
  local queue = queues.of(name)
  local popped = writes.pop_first(queue.work_key, store.text(count_))
  note_scores(popped)
  if #popped > 2 then
    local jids = {}
    for i = 1, #popped, 2 do
      jids[#jids + 1] = keys.ready_jid_of(popped[i])
    end
    leave(queue.work_key, popped, 2 * budget.reach(jids) + 1)
  end
  local taken = load_ready(queue.work_key, popped, 2)
  if #taken < #popped / 2 then -- some were missing: the next ones take their place
    for _, job in ipairs(queues.take(name, #popped / 2 - #taken)) do
      taken[#taken + 1] = job
    end
  end
  return taken
end

-- Keep as many jobs that were taken out of the order, which are in no list then, and put the others back to where they
-- were.
function queues.keep_taken(name, taken, fit)
  local queue = queues.of(name)
  for i = fit + 1, #taken do
    local job = taken[i]
    writes.put_off('ZADD', queue.work_key, queues.standing(job), queues.rank(job))
  end
  local kept = fit == #taken and taken or {unpack(taken, 1, fit)}
  for i = 1, fit do
    local job = kept[i]
    if job.options ~= '' then
      ttl.leave(job)
      turns.leave(job)
    end
    job.state = ''
  end
  return kept
end

local function first_moment(command, key, ...)
  local found = writes.fetch(command, key, ...)
  if found[2] then
    return math.max(tonumber(found[2]), 0)
  end
  return NEVER
end

-- Whether a lease may have expired, or a scheduled job or a run may be due.
function queues.is_due(name, now)
  local queue = queues.of(name)
  return queue.due <= now
end

-- Scheduled jobs that have become due, earliest first, as far as the budget goes, or `all` of them. This is the last
-- check for due work: it sets the bound again.
function queues.due(name, now, most, all)
  local queue = queues.of(name)
  local key = queue.scheduled_key
  local due = until_(key, now, most)
  local lock = first_moment('ZRANGE', queue.locks_key, 0, 0, 'WITHSCORES')
  local scheduled = now
  if #due < most then
    scheduled = first_moment('ZRANGEBYSCORE', key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  end
  if queue.expires < NEVER then
    queue.expires = first_moment('ZRANGE', keys.queue(name, '-expires'), 0, 0, 'WITHSCORES')
    queue.expires = queue.expires < NEVER and queue.expires + 1 or NEVER
    queue.expires = math.min(queue.expires, first_moment('ZRANGE', keys.queue(name, '-ends'), 0, 0, 'WITHSCORES'))
  end
  queue.due = math.min(lock, scheduled, queue.recur, queue.expires, queue.admits_at or NEVER)
  write(queue)
  return queues.load_some(key, due, nil, 1, all)
end

-- Let the next pop check the schedule again, because this one has left a due job.
function queues.is_late(job)
  lower_due(queues.of(job.queue), tonumber(job.ready_at))
end

-- Stalled jobs, then those with a lease that expired by a given time, earliest first, as far as the budget goes, or `all`
-- of them.
function queues.lapsed(name, moment, most, all)
  local key = keys.queue(name, '-locks')
  return queues.load_some(key, until_(key, moment, most), nil, 1, all)
end

-- Move a job that has become due from the schedule into the order, at the position that its due time gives.
function queues.promote(job)
  queues.unschedule(job)
  job.state = 'waiting'
  queues.push(job)
end

-- The first jobs in the order.
function queues.next_ready(name, most)
  local key = keys.queue(name, '-work')
  local members = writes.fetch('ZRANGE', key, 0, most - 1, 'WITHSCORES')
  note_scores(members)
  return queues.load_some(key, members, ready_jids_of(members, 2), 2)
end

-- The first ready jobs that still stand by their priority, if the jobs of their queue age.
function queues.unaged(name, most)
  if config.aging(name) == 0 then
    return {}
  end
  local key = keys.queue(name, '-work')
  local members = writes.fetch('ZRANGEBYSCORE', key, '(' .. aging.BOUND, '+inf', 'LIMIT', 0, most)
  return queues.load_some(key, members, ready_jids_of(members, 1), 1)
end

-- Whether there are any; the state of the queue was read.
function queues.has_unaged(queue)
  return config.aging(queue.name) > 0 and writes.fetch('ZCOUNT', queue.work_key, '(' .. aging.BOUND, '+inf') > 0
end

-- Move a ready job to its place by age.
function queues.age(job)
  local queue = queues.of(job.queue)
  store.add(queue.work_key, queues.place(job), queues.rank(job))
end

-- Due jobs for a read, which must not set the bound.
function queues.look_due(name, now, most)
  local key = keys.queue(name, '-scheduled')
  return queues.load_some(key, until_(key, now, most), nil, 1)
end

-- ---- idle workers

-- Wake one idle worker.
function queues.wake_one(name)
  queues.wake(queues.of(name), 1)
end

-- Wake one idle worker if there is a ready job.
function queues.wake_if_ready(name)
  if size(name, '-work') > 0 then
    queues.wake_one(name)
  end
end

-- Count one more idle worker. Unused wake-ups are stale (there is no job): they become idle workers again.
function queues.await_work(name)
  local queue = queues.of(name)
  local wakes = writes.fetch('LLEN', keys.queue(name, '-wake'))
  queue.idle = store.text(math.min(queue.idle + wakes + 1, IDLE_MOST))
  write(queue)
  if wakes > 0 then
    writes.delete(keys.queue(name, '-wake')) -- directly: this very step may add a wake-up
  end
end

-- Turn all idle workers into wake-ups: the time until which they sleep may be wrong now.
function queues.wake_all(name)
  queues.wake(queues.of(name), IDLE_MOST)
end

-- Record the time at which a job will have expired, or a request is due.
function queues.expect_end(name, moment)
  local queue = queues.of(name)
  if moment < queue.expires then
    queue.expires, queue.due = moment, math.min(queue.due, moment)
    write(queue)
  end
end

-- Record the due time of the first run of a recurring job; never, if there is none.
function queues.expect_runs(name, moment)
  local queue = queues.of(name)
  if queue.recur ~= moment then
    queue.recur, queue.due = moment, math.min(queue.due, moment)
    write(queue)
  end
end

-- Record the first time at which a pop must check a throttle; false if there are no parked jobs.
function queues.expect_admission(name, moment)
  local queue = queues.of(name)
  if queue.admits_at ~= moment then
    queue.admits_at, queue.due = moment, math.min(queue.due, moment or NEVER)
    write(queue)
  end
end

-- Whether any throttle has an entry: parked or admitted jobs.
function queues.has_parked(name)
  local queue = queues.of(name)
  return queue.admits_at ~= false
end

-- ---- looking

-- How many entries lie in low < time <= high, and the ids of a page of them.
function queues.page(name, part, low, high, offset, count)
  local key = keys.queue(name, part)
  local total = writes.fetch('ZCOUNT', key, low, high)
  if count == 0 then
    return total, {}
  end
  return total, jids_of(writes.fetch('ZRANGEBYSCORE', key, low, high, 'LIMIT', offset, count))
end

-- The first entries in low < time <= high, each with its time; those of one time by id.
function queues.in_time(name, part, low, high, count)
  local found = writes.fetch('ZRANGEBYSCORE', keys.queue(name, part), '(' .. low, high, 'WITHSCORES', 'LIMIT', 0, count)
  local members, places = {}, {}
  for i = 1, #found, 2 do
    members[#members + 1] = found[i]
  end
  for i, jid in ipairs(jids_of(members)) do
    places[i] = {tonumber(found[2 * i]), jid}
  end
  table.sort(places, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and config.before(a[2], b[2])
  end)
  return places
end

-- How many entries have at most this time.
function queues.count(name, part, moment)
  return writes.fetch('ZCOUNT', keys.queue(name, part), '-inf', moment)
end

function queues.size(name, part)
  return size(name, part)
end

-- The ids of a page of the ready jobs.
function queues.order(name, offset, count)
  return ready_jids_of(writes.fetch('ZRANGE', keys.queue(name, '-work'), offset, offset + count - 1), 1)
end

-- How many jobs come before a job in its queue's order, if it is ready.
function queues.ahead(job)
  if job.state ~= 'waiting' then
    return 0
  end
  return writes.fetch('ZRANK', keys.queue(job.queue, '-work'), queues.rank(job))
end

-- The next time at which a job becomes ready, or a request is due, by itself; or 0.
function queues.next_at(name, now, grace)
  local function after(part, moment)
    local key = keys.queue(name, part)
    return first_moment('ZRANGEBYSCORE', key, '(' .. moment, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  end
  local soon = math.min(after('-scheduled', now), after('-locks', now - grace) + grace)
  local queue = queues.of(name)
  if queue.recur < NEVER then
    soon = math.min(soon, after('-recur', now))
  end
  if queue.expires < NEVER then
    soon = math.min(soon, after('-ends', now))
  end
  return soon < queues.NO_TIME and soon or 0
end

-- The ids of jobs that wait for others, the last ones first; then of the first that are ready, scheduled, or parked. Jobs
-- mostly come after those that they wait for, so a caller that ends them need not leave these to a later call.
function queues.not_begun(name, most)
  local found = jids_of(writes.fetch('ZREVRANGE', keys.queue(name, '-depends'), 0, most - 1))
  for _, part in ipairs({'-work', '-scheduled', '-throttled'}) do
    local room = most - #found
    if room > 0 then
      local members = writes.fetch('ZRANGE', keys.queue(name, part), 0, room - 1)
      for _, jid in ipairs(part == '-work' and ready_jids_of(members, 1) or jids_of(members)) do
        found[#found + 1] = jid
      end
    end
  end
  return found
end

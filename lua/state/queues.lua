-- Queues: four sorted sets each, a pause, and the count of idle workers.
--
-- A queue is on the list from its first put until it is forgotten. Workers that found nothing count as idle; a job that
-- becomes ready turns one idle worker into one wake-up, an element of a list on which idle workers block, so that a
-- thousand waiters do not stampede after one job.
--
-- The due bound is a moment before which no lease can have run out and no scheduled job can be due: a pop before it looks
-- at neither. Everything that sets an earlier moment lowers it; the look at the due jobs sets it anew.

local queues = {}

local FIRST = '-inf' -- where a stalled job stands among the locks: before every lease that ran out
local IDLE_MOST = 1000
local NEVER = 99999999999999

local STATE = '^(%d*)\t(%d)\t(%d+)\t(%d+)$'
local NOTHING = '\t0\t0\t99999999999999'

-- ---- what is known of a queue besides its jobs: first seen, paused, idle, due

function queues.of(name)
  local queue = store.queues[name]
  if not queue then
    local text = store.read(keys.queue(name, '-state')) or NOTHING
    local first_seen, paused, idle, due = string.match(text, STATE)
    queue = {name = name, first_seen = first_seen, paused = paused, idle = idle, due = due} -- numbers as text
    store.queues[name] = queue
  end
  return queue
end

local function write(queue)
  local text = table.concat({queue.first_seen, queue.paused, queue.idle, queue.due}, '\t')
  store.write(keys.queue(queue.name, '-state'), text)
end

local function lower_due(name, moment)
  local queue = queues.of(name)
  if moment < tonumber(queue.due) then
    queue.due = store.text(moment)
    write(queue)
  end
end

-- Put a queue on the list, if it is not there.
function queues.register(now, name)
  local queue = queues.of(name)
  if queue.first_seen == '' then
    queue.first_seen = store.text(now)
    write(queue)
    store.add(keys.queues, now, name)
  end
end

-- Take a queue off the list, with its pause and its idle workers; say whether it was there, or paused.
function queues.forget(name)
  local queue = queues.of(name)
  store.queues[name] = nil
  store.write(keys.queue(name, '-state'), false)
  store.write(keys.queue(name, '-wake'), false)
  if queue.first_seen ~= '' then
    store.remove(keys.queues, name)
  end
  return queue.first_seen ~= '' or queue.paused == '1'
end

-- A page of the names of the queues on the list, first seen first.
function queues.listed(offset, count)
  return store.sorted('ZRANGE', keys.queues, offset, offset + count - 1)
end

local function size(name, part)
  return store.sorted('ZCARD', keys.queue(name, part))
end

-- How many jobs a queue has, in any state.
function queues.length(name)
  return size(name, '-work') + size(name, '-scheduled') + size(name, '-depends') + size(name, '-locks')
end

-- Turn idle workers into wake-ups: one for each job that they may now get.
local function wake(queue, most)
  local woken = math.min(tonumber(queue.idle), most)
  queue.idle = store.text(queue.idle - woken)
  write(queue)
  for _ = 1, woken do
    redis.call('RPUSH', keys.queue(queue.name, '-wake'), '1')
  end
end

function queues.is_paused(name)
  return queues.of(name).paused == '1'
end

-- Pause a queue or let it go on; say whether that changed anything.
function queues.set_paused(name, paused)
  local queue = queues.of(name)
  if queue.paused == paused then
    return false
  end
  queue.paused = paused
  if paused == '0' then
    wake(queue, queues.length(name))
  end
  write(queue)
  return true
end

-- ---- places

-- Make a job ready, and wake a worker for it.
function queues.push(job)
  local member = keys.ready_member(job.ready_at, job.seq, job.jid)
  store.add(keys.queue(job.queue, '-work'), job.priority, member)
  local queue = queues.of(job.queue)
  if queue.idle ~= '0' then
    wake(queue, 1)
  end
end

-- Take a job out of the order.
function queues.pull(job)
  store.remove(keys.queue(job.queue, '-work'), keys.ready_member(job.ready_at, job.seq, job.jid))
end

-- Let a job wait for its time.
function queues.schedule(job)
  store.add(keys.queue(job.queue, '-scheduled'), job.ready_at, keys.member(job.seq, job.jid))
  lower_due(job.queue, tonumber(job.ready_at))
end

-- Take a job off the schedule.
function queues.unschedule(job)
  store.remove(keys.queue(job.queue, '-scheduled'), keys.member(job.seq, job.jid))
end

-- Let a job wait for others.
function queues.park(job)
  store.add(keys.queue(job.queue, '-depends'), job.put_at, keys.member(job.seq, job.jid))
end

-- Let a job no longer wait for others.
function queues.unpark(job)
  store.remove(keys.queue(job.queue, '-depends'), keys.member(job.seq, job.jid))
end

-- Enter a lease, or a job whose lease was taken, and wake a worker for that.
function queues.lock(job)
  local stalled = job.state == 'stalled'
  local score = stalled and FIRST or job.expires_at
  store.add(keys.queue(job.queue, '-locks'), score, keys.member(job.seq, job.jid))
  if stalled then
    wake(queues.of(job.queue), 1)
  end
  lower_due(job.queue, stalled and 0 or tonumber(job.expires_at))
end

-- Strike a lease.
function queues.unlock(job)
  store.remove(keys.queue(job.queue, '-locks'), keys.member(job.seq, job.jid))
end

-- Let a lease run until another moment.
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

-- The jobs of some ids, read with one command.
local function load(jids)
  if #jids > 1 then
    records.prefetch(jids)
  end
  local found = {}
  for i, jid in ipairs(jids) do
    found[i] = records.get(jid)
  end
  return found
end

local function until_(name, part, moment, most)
  local key = keys.queue(name, part)
  return store.sorted('ZRANGEBYSCORE', key, '-inf', moment, 'LIMIT', 0, most)
end

-- Take the next ready jobs out of the order; they are in no place then.
function queues.take(name, count)
  if count == 0 then
    return {}
  end
  local popped = store.sorted('ZPOPMIN', keys.queue(name, '-work'), count)
  local jids = {}
  for i = 1, #popped, 2 do
    jids[#jids + 1] = keys.ready_jid_of(popped[i])
  end
  local taken = load(jids)
  for _, job in ipairs(taken) do
    job.state = ''
  end
  return taken
end

local function first_moment(command, key, ...)
  local found = store.sorted(command, key, ...)
  if found[2] then
    return math.max(tonumber(found[2]), 0)
  end
  return NEVER
end

-- Scheduled jobs whose time has come, by that time. This is the last look at what is due: it sets the bound anew.
function queues.due(name, now, most)
  local queue = queues.of(name)
  if tonumber(queue.due) > now then
    return {}
  end
  local key = keys.queue(name, '-scheduled')
  local due = until_(name, '-scheduled', now, most)
  local lock = first_moment('ZRANGE', keys.queue(name, '-locks'), 0, 0, 'WITHSCORES')
  local scheduled = now
  if #due < most then
    scheduled = first_moment('ZRANGEBYSCORE', key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  end
  queue.due = store.text(math.min(lock, scheduled))
  write(queue)
  return load(jids_of(due))
end

-- Stalled jobs, then those whose lease ran out by a moment, by that moment.
function queues.lapsed(name, now, moment, most)
  if tonumber(queues.of(name).due) > now then
    return {}
  end
  return load(jids_of(until_(name, '-locks', moment, most)))
end

-- Move a job whose time has come from the schedule into the order, where its time and sequence place it.
function queues.promote(job)
  queues.unschedule(job)
  job.state = 'waiting'
  queues.push(job)
end

-- The first jobs in the order.
function queues.next_ready(name, most)
  local jids = {}
  for i, member in ipairs(store.sorted('ZRANGE', keys.queue(name, '-work'), 0, most - 1)) do
    jids[i] = keys.ready_jid_of(member)
  end
  return load(jids)
end

-- Lapsed and due jobs for a read, which must not set the bound.
function queues.look_lapsed(name, moment, most)
  return load(jids_of(until_(name, '-locks', moment, most)))
end

function queues.look_due(name, now, most)
  return load(jids_of(until_(name, '-scheduled', now, most)))
end

-- ---- idle workers

-- Count one more idle worker. Wake-ups not yet used are stale, for there is no job, and count as idle again.
function queues.await_work(name)
  local queue = queues.of(name)
  local wakes = redis.call('LLEN', keys.queue(name, '-wake'))
  queue.idle = store.text(math.min(queue.idle + wakes + 1, IDLE_MOST))
  write(queue)
  store.write(keys.queue(name, '-wake'), false)
end

-- ---- looking

-- How many places lie in low < moment <= high, and the ids of a page of them.
function queues.page(name, part, low, high, offset, count)
  local key = keys.queue(name, part)
  local total = store.sorted('ZCOUNT', key, low, high)
  if count == 0 then
    return total, {}
  end
  return total, jids_of(store.sorted('ZRANGEBYSCORE', key, low, high, 'LIMIT', offset, count))
end

function queues.count(name, part, moment)
  return store.sorted('ZCOUNT', keys.queue(name, part), '-inf', moment)
end

function queues.size(name, part)
  return size(name, part)
end

-- The ids of a page of the ready jobs.
function queues.order(name, offset, count)
  local jids = {}
  for i, member in ipairs(store.sorted('ZRANGE', keys.queue(name, '-work'), offset, offset + count - 1)) do
    jids[i] = keys.ready_jid_of(member)
  end
  return jids
end

-- The next moment at which a job becomes ready by itself, or 0.
function queues.next_at(name, now, grace)
  local function after(part, moment)
    local key = keys.queue(name, part)
    return first_moment('ZRANGEBYSCORE', key, '(' .. moment, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  end
  local soon = math.min(after('-scheduled', now), after('-locks', now - grace) + grace)
  return soon < NEVER and soon or 0
end

-- The ids of the first jobs that are ready, scheduled, or wait for others.
function queues.not_begun(name, most)
  local found = queues.order(name, 0, most)
  for _, part in ipairs({'-scheduled', '-depends'}) do
    local room = most - #found
    if room > 0 then
      for _, jid in ipairs(jids_of(store.sorted('ZRANGE', keys.queue(name, part), 0, room - 1))) do
        found[#found + 1] = jid
      end
    end
  end
  return found
end

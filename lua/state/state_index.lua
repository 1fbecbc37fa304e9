-- State index: the sorted set that contains a job, by its state. The keys and members are built in keys.lua.

local state_index = {}

local function push(job)
  queues.push(job)
  parked.reserve(job)
end

local function pull(job)
  queues.pull(job)
  parked.unreserve(job)
end

local function throttle_(job)
  queues.throttle(job)
  if concurrency_keys.is_parked(job) then
    concurrency_keys.park(concurrency_keys.of(job), job)
  else
    parked.park(job)
  end
end

local function unthrottle_(job)
  queues.unthrottle(job)
  if concurrency_keys.is_parked(job) then
    concurrency_keys.unpark(concurrency_keys.of(job), job)
  else
    parked.unpark(job)
  end
end

local function lock(job)
  queues.lock(job)
  parked.hold(job)
end

local function unlock(job)
  queues.unlock(job)
  if job.options ~= '' or store.config then
    parked.release(job)
  end
end

local function begin_lease(job)
  lock(job)
  workers.hold(job)
end

local function begin_plain_lease(job)
  queues.lock(job)
  workers.hold(job)
end

local function end_lease(job)
  unlock(job)
  workers.release(job)
end

local function end_plain_lease(job)
  queues.unlock(job)
  if store.config then
    parked.release(job)
  end
  workers.release(job)
end

-- For each state, how a job enters its lists and how it leaves them.
local PLACES = {
  waiting = {push, pull},
  scheduled = {queues.schedule, queues.unschedule},
  depends = {queues.park, queues.unpark},
  throttled = {throttle_, unthrottle_},
  running = {begin_lease, end_lease},
  stalled = {lock, unlock},
  complete = {completed.add, completed.discard},
  failed = {failures.add, failures.discard},
}

-- Shortcuts for a job without options: no throttle has admitted it, and it names none.
local PLAIN = {
  waiting = {queues.push, queues.pull},
  running = {begin_plain_lease, end_plain_lease},
  stalled = {queues.lock, unlock},
}

-- Put a job into the lists of its state.
function state_index.enter(job)
  local ways = job.options == '' and PLAIN[job.state] or PLACES[job.state]
  ways[1](job)
end

-- Take a job out of the lists of its state.
function state_index.leave(job)
  local ways = job.options == '' and PLAIN[job.state] or PLACES[job.state]
  ways[2](job)
end

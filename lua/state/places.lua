-- Places: which sorted list a job stands in, by its state. The keys and members are in keys.lua.

local places = {}

local function push(job)
  queues.push(job)
  if job.options ~= '' then
    gates.reserve(job)
  end
end

local function pull(job)
  queues.pull(job)
  if job.options ~= '' then
    gates.unreserve(job)
  end
end

local function hold_back(job)
  queues.hold_back(job)
  if lines.is_parked(job) then
    lines.park(lines.of(job), job)
  else
    gates.park(job)
  end
end

local function let_on(job)
  queues.let_on(job)
  if lines.is_parked(job) then
    lines.unpark(lines.of(job), job)
  else
    gates.unpark(job)
  end
end

local function lock(job)
  queues.lock(job)
  if job.options ~= '' then
    gates.hold(job)
  end
end

local function unlock(job)
  queues.unlock(job)
  if job.options ~= '' or store.config then
    gates.let_go(job)
  end
end

local function begin_lease(job)
  lock(job)
  workers.hold(job)
end

local function end_lease(job)
  unlock(job)
  workers.let_go(job)
end

-- For each state, how a job enters its place and how it leaves it.
local PLACES = {
  waiting = {push, pull},
  scheduled = {queues.schedule, queues.unschedule},
  depends = {queues.park, queues.unpark},
  throttled = {hold_back, let_on},
  running = {begin_lease, end_lease},
  stalled = {lock, unlock},
  complete = {completed.add, completed.discard},
  failed = {failures.add, failures.discard},
}

-- Put a job into the place that its state says.
function places.enter(job)
  PLACES[job.state][1](job)
end

-- Take a job out of the place that its state says.
function places.leave(job)
  if store.many and tonumber(job.seq) > store.began then
    store.write_sorted()
  end
  PLACES[job.state][2](job)
end

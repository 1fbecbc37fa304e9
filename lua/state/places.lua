-- Places: which sorted list a job stands in, by its state. The keys and members are in keys.lua.

local places = {}

local function begin_lease(job)
  queues.lock(job)
  workers.hold(job)
end

local function end_lease(job)
  queues.unlock(job)
  workers.let_go(job)
end

-- For each state, how a job enters its place and how it leaves it.
local PLACES = {
  waiting = {queues.push, queues.pull},
  scheduled = {queues.schedule, queues.unschedule},
  depends = {queues.park, queues.unpark},
  throttled = {queues.hold_back, queues.let_on},
  running = {begin_lease, end_lease},
  stalled = {queues.lock, queues.unlock},
  complete = {completed.add, completed.discard},
  failed = {failures.add, failures.discard},
}

-- Put a job into the place that its state says.
function places.enter(job)
  PLACES[job.state][1](job)
end

-- Take a job out of the place that its state says.
function places.leave(job)
  PLACES[job.state][2](job)
end

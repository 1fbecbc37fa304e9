-- Places: which sorted list a job stands in, by its state. The keys and members are in keys.lua.

local places = {}

-- Put a job into the place that its state says.
function places.enter(job)
  local state = job.state
  if state == 'waiting' then
    queues.push(job)
  elseif state == 'running' then
    queues.lock(job)
    workers.hold(job)
  elseif state == 'complete' then
    completed.add(job)
  elseif state == 'failed' then
    failures.add(job)
  elseif state == 'scheduled' then
    queues.schedule(job)
  elseif state == 'depends' then
    queues.park(job)
  elseif state == 'stalled' then
    queues.lock(job)
  end
end

-- Take a job out of the place that its state says.
function places.leave(job)
  local state = job.state
  if state == 'running' then
    queues.unlock(job)
    workers.let_go(job)
  elseif state == 'waiting' then
    queues.pull(job)
  elseif state == 'scheduled' then
    queues.unschedule(job)
  elseif state == 'depends' then
    queues.unpark(job)
  elseif state == 'stalled' then
    queues.unlock(job)
  elseif state == 'complete' then
    completed.discard(job)
  elseif state == 'failed' then
    failures.discard(job)
  end
end

-- Why a job does not run: its state, its throttles, its queue.
--
-- Workers do not say which queues they serve. But a worker that asks a queue takes its first job. So nobody serves a
-- queue if a job that nothing bars has been ready for UNSERVED_MS, no worker holds a lease on a job of the queue, and no
-- job of it was completed, failed or retried in this minute or the one before.

local explanation = {}

local FEW = 3
local SILENT_MS = 60000
local UNSERVED_MS = 20000
local EXAMINED = 100

-- The first few jobs, as text.
local function some(jids)
  local few = {}
  for i = 1, math.min(#jids, FEW) do
    few[i] = jids[i]
  end
  return table.concat(few, ' ')
end

-- What there is to say of a request that a job waits for.
local function of_request(request)
  if requests.has_ended(request) and not requests.has_ended_well(request) then
    return {'request_failed', request.id, request.state, request.done, request.total}
  end
  return {'request', request.id, request.state, requests.left(request), request.total}
end

-- What there is to say of a job that another one waits for, or nothing.
local function of_failure(job)
  return job.state == 'failed' and {'dependency_failed', job.jid, job.group}
end

-- The first few failed jobs and requests that it waits for.
local function of_dependencies(found, job)
  local others, few = {}, 0
  for i, other in ipairs(dependencies.of(job)) do
    others[i] = i <= EXAMINED and other or nil
  end
  records.prefetch(dependencies.jobs_among(others))
  for _, other in ipairs(others) do
    local id = arguments.awaited_request(other)
    local said
    if id then
      said = of_request(requests.load(id))
    else
      said = of_failure(jobs.load(other))
    end
    if said and few < FEW then
      found[#found + 1] = said
      few = few + 1
    end
  end
end

-- The reasons that follow from its state.
local function of_state(now, job, state)
  local found = {}
  if state == 'complete' then
    found[#found + 1] = {'complete', job.ended_at}
  elseif state == 'failed' then
    found[#found + 1] = {'failed', job.group}
  elseif state == 'running' then
    found[#found + 1] = {'running', job.worker, job.expires_at}
  elseif state == 'scheduled' then
    found[#found + 1] = {'scheduled', job.ready_at}
  elseif state == 'depends' then
    found[#found + 1] = {'depends', job.waits, some(dependencies.of(job))}
    of_dependencies(found, job)
  elseif state == 'stalled' then
    local free_at = job.state == 'running' and job.expires_at + config.value('grace-period') or 0
    if free_at > now then
      found[#found + 1] = {'lapsed', job.worker, free_at}
    end
  elseif concurrency_keys.is_parked(job) then
    found[#found + 1] = {'ordered', concurrency_keys.of(job), some(concurrency_keys.holders(concurrency_keys.of(job), FEW))}
  end
  return found
end

-- Which of its throttles are closed to it, and how many jobs are parked before it.
local function of_throttles(found, now, job)
  for _, name in ipairs(throttles.passed_by(job)) do
    local opens = throttles.opens_at(now, name, throttles.cost(job), {0, 0}, false)
    if opens == throttles.NEVER then
      local throttle = throttles.of(name)
      found[#found + 1] = {'full', name, throttles.running(name), throttle.concurrency, some(throttles.holders(name, FEW))}
    elseif opens > now then
      found[#found + 1] = {'spent', name, opens}
    end
  end
  local ahead = parked.ahead(job)
  if ahead > 0 then
    found[#found + 1] = {'turn', options.get(job, 'gate'), ahead}
  end
end

-- Whether a worker may be asking for the jobs of its queue, though the job has been ready since then.
local function is_served(now, job, since)
  if since > now - UNSERVED_MS or queues.size(job.queue, '-locks') > queues.count(job.queue, '-locks', now) then
    return true
  end
  for _, one in ipairs(stats.metrics(now, job.queue, now, 2)) do
    if one[2] + one[3] + one[4] > 0 then
      return true
    end
  end
  return false
end

-- The reasons that follow from its queue: pauses, jobs before it, and missing workers.
local function of_queue(found, now, job, state, barred)
  local since = tonumber(state == 'waiting' and job.ready_at or job.expires_at)
  for _, pause in ipairs(pauses.lasting(now, job.queue)) do
    found[#found + 1] = {'paused', job.queue, pause[1], pause[2]}
    barred = true
  end
  local ahead = queues.ahead(job)
  if ahead > 0 then
    found[#found + 1] = {'behind', job.queue, ahead}
  end
  if job.state == 'waiting' and options.get(job, 'turn') then
    local rounds = turns.rounds(job, queues.first(job.queue, job.priority))
    if rounds > 0 then
      found[#found + 1] = {'fair', job.queue, turns.fair_key(job), rounds}
    end
  end
  local last = workers.last_seen()
  if last < now - SILENT_MS then
    found[#found + 1] = {'unattended', last}
  elseif not barred and since > 0 and not is_served(now, job, since) then
    found[#found + 1] = {'unserved', job.queue, since}
  end
end

-- List the reasons why a job does not run, or say that it runs.
function explanation.reasons(now, job)
  local state = jobs.seen_at(now, job)
  local found = of_state(now, job, state)
  if state == 'waiting' or state == 'throttled' then
    of_throttles(found, now, job)
  end
  if state == 'waiting' or state == 'throttled' or state == 'stalled' then
    of_queue(found, now, job, state, #found > 0)
  end
  local shown = {}
  for i, reason in ipairs(found) do
    local facts = {}
    for k = 2, #reason do
      facts[k - 1] = type(reason[k]) == 'number' and store.text(reason[k]) or reason[k]
    end
    shown[i] = {reason[1], facts}
  end
  return shown
end

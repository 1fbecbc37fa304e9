-- Putting jobs into queues.

local putting = {}

-- The state of a job that nothing holds but its dependencies, its time, and its line.
function putting.begins(now, job)
  if job.waits ~= '0' then
    if job.options ~= '' then
      lining.give_up(now, job)
    end
    return 'depends'
  end
  if tonumber(job.ready_at) > now then
    return 'scheduled'
  end
  return job.options ~= '' and lining.admit(job) or 'waiting'
end

-- Begin a lifted job's stage in a queue; give the state in which it begins.
function putting.enter(now, job, queue, delay_ms)
  job.queue = queue
  job.worker, job.grant = '', ''
  job.expires_at, job.ended_at = 0, 0
  job.remaining = job.retries
  job.put_at = now
  job.ready_at = now + delay_ms
  history.add(now, job, 'put', queue)
  return putting.begins(now, job)
end

local function put(now, op, edges, request)
  local job = jobs.get(op.jid) or jobs.create(op.jid)
  queues.register(now, op.queue)
  if job.state == 'running' then
    store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, 'put')
  elseif job.state == 'failed' then
    stats.recovered(job.ended_at, job.queue)
  end

  jobs.lift(job)
  settling.settle(now, job)
  options.assign(job, op)
  job.klass = op.klass
  records.set_data(job, op.data)
  job.result, job.progress = '', ''
  job.put_request = request
  job.priority = op.priority or job.priority
  job.retries = op.retries or job.retries
  if edges then
    dependencies.forget(job)
    dependencies.link(job, edges)
  end
  local state = putting.enter(now, job, op.queue, op.delay_ms)
  store.emit(now, 'put', job.jid, op.queue, op.klass, state)
  if op.tags then
    tags.assign(job, op.tags)
  end
  lining.place(now, job, state)
end

-- The edges of each, where they are said; or refuse.
local function check(puts)
  local asked = false
  for i = 1, #puts do
    asked = asked or puts[i].depends ~= nil
  end
  if not asked then
    return {}
  end
  for _, op in ipairs(puts) do
    local job = op.depends and jobs.get(op.jid)
    if job then
      dependencies.check_bounded(job)
    end
  end
  return dependencies.check(puts)
end

-- Refuse an operation that names a job twice.
function putting.check_distinct(list)
  local seen = {}
  for i = 1, #list do
    local jid = list[i].jid
    if seen[jid] then
      refusals.refuse('DUPLICATE_JID', jid)
    end
    seen[jid] = true
  end
end

local function is_resend(jid, request)
  local job = request ~= '' and jobs.get(jid)
  return job and job.put_request == request
end

-- Put a job into a queue, or move it there.
function putting.put(now, op)
  if is_resend(op.jid, op.request) then
    return op.jid
  end
  local edges = op.depends and check({op}) or {}
  gating.check_throttles(op, 'put')

  put(now, op, edges[op.jid], op.request)
  return op.jid
end

-- Put several jobs, which may depend on each other.
function putting.put_many(now, op)
  local jids = {}
  for i = 1, #op.jobs do
    jids[i] = op.jobs[i].jid
  end
  for i = 1, #jids do
    if is_resend(jids[i], op.request) then
      return jids
    end
  end
  putting.check_distinct(op.jobs)
  local edges = check(op.jobs)
  for i = 1, #op.jobs do
    gating.check_throttles(op.jobs[i], 'put_many')
  end

  for i = 1, #jids do
    if not jobs.get(jids[i]) then
      jobs.create(jids[i])
    end
  end
  for i = 1, #jids do
    put(now, op.jobs[i], edges[jids[i]], op.request)
  end
  return jids
end

-- Putting jobs into queues.

local put = {}

-- End a job's present stage, whatever its state.
local function leave(now, job)
  if job.state == 'running' then
    store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, 'put')
  elseif job.state == 'failed' then
    stats.recovered(job.ended_at, job.queue)
  end
  jobs.lift(job)
  cleanup.clean_up(now, job)
  job.token = '0'
end

-- Apply the put's rarely used options, and its priority and retries.
local function assign(job, op, of)
  if job.options ~= '' or options.are_given(op) then
    options.assign(job, op)
  end
  if of then
    options.set(job, 'request', of.id)
    job.priority = of.priority
  end
  job.priority = op.priority or job.priority
  job.retries = op.retries or job.retries
end

-- Link a job to its dependencies, and let it hold its key.
local function bind(now, job, op, edges)
  if edges then
    dependencies.forget(job)
    dependencies.link(job, edges)
  end
  if op.unique then
    deduplication.claim(now, job, op)
  end
end

-- Put a job; a sub-request gets the priority of its request.
function put.put_one(now, op, edges, request, of)
  local job = jobs.made(op.jid)
  queues.register(now, op.queue)
  if job.state ~= '' or job.options ~= '' then
    leave(now, job)
  end
  if op.named or job.options ~= '' or of then
    assign(job, op, of)
  end
  job.klass = op.klass
  records.set_data(job, op.data)
  job.result, job.progress = '', ''
  job.put_request = request
  if op.named then
    bind(now, job, op, edges)
  end
  local state = stages.enter(now, job, op.queue, stages.due(now, op))
  store.emit(now, 'put', job.jid, op.queue, op.klass, state, tags.fact(job, op.tags))
  if op.tags then
    tags.assign(job, op.tags)
  end
  concurrency.place(now, job, state)
end

-- Give the edges of each job that names dependencies; or refuse. A job that is put is a sub-request of `request`, or of
-- none.
function put.check(puts, request)
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
  return dependencies.check(puts, request)
end

-- Refuse an operation that names a job twice.
function put.check_distinct(list)
  local seen = {}
  for i = 1, #list do
    local jid = list[i].jid
    if seen[jid] then
      refusals.refuse('DUPLICATE_JID', jid)
    end
    seen[jid] = true
  end
end

-- Refuse more work than one operation may do: the arguments, and the existing jobs that are moved.
function put.check_budget(puts, operation)
  local units = 0
  for i = 1, #puts do
    local job = jobs.get(puts[i].jid)
    units = units + budget.of_put(puts[i]) + (job and concurrency.ending(job) + concurrency.passing(job) or 0)
  end
  budget.check(operation, #puts, units)
end

-- Whether this very request has put the job.
local function is_resend(jid, request)
  if request == '' then
    return false
  end
  local job = jobs.get(jid)
  return job and job.put_request == request
end

-- Put a job, unless another job holds its key; give the job that now stands for it.
local function put_unless(now, op, stands, edges, request)
  if stands == op.jid then
    put.put_one(now, op, op.depends and edges, request)
  else
    deduplication.deduplicate(now, op, stands)
  end
  return stands
end

-- Put a job that has a deduplication key.
local function put_unique(now, op)
  local again = deduplication.recall('put', op.request)
  if again then
    return again
  end
  local stands = deduplication.plan(now, {op}, 'put')
  local edges = put.check(deduplication.redirect(now, {op}, stands))
  admission.check_throttles(op, 'put')

  local jid = put_unless(now, op, stands[op.jid], edges[op.jid], op.request)
  deduplication.remember('put', op.request, jid)
  return jid
end

-- Check a put without a key; give its edges if it names dependencies; or refuse.
local function check_plain(op)
  stages.check(op, 'put')
  deduplication.check(op, 'put')
  local edges = put.check({op})[op.jid]
  admission.check_throttles(op, 'put')
  return edges
end

-- Put a job into a queue, or move it there.
function put.put(now, op)
  if is_resend(op.jid, op.request) then
    return op.jid
  end
  if op.unique then
    return put_unique(now, op)
  end
  local edges = op.named and check_plain(op) or nil

  put.put_one(now, op, edges, op.request)
  return op.jid
end

-- Put a job that the engine creates itself, and that nothing refuses; give it.
function put.put_made(now, op)
  put.put_one(now, op, nil, '')
  return jobs.load(op.jid)
end

-- The reply to the same request, if it was answered before, or nil.
local function answered(op, jids, keyed)
  local again = keyed and deduplication.recall('put_many', op.request)
  if again then
    return again
  end
  for i = 1, #jids do
    if is_resend(jids[i], op.request) then
      return jids
    end
  end
end

-- Create the jobs that do not exist yet: a job may depend on one that is put after it.
local function create_all(puts)
  for i = 1, #puts do
    jobs.made(puts[i].jid)
  end
end

-- Put several jobs, or refuse; give for each the job that stands for it.
local function put_all(now, puts, keyed, operation, request)
  local stands = deduplication.plan(now, puts, operation)
  local accepted = keyed and deduplication.redirect(now, puts, stands) or puts
  local edges = put.check(accepted)
  for i = 1, #puts do
    admission.check_throttles(puts[i], operation)
  end

  create_all(accepted)
  local jids = {}
  for i, one in ipairs(puts) do
    jids[i] = put_unless(now, one, stands[one.jid] or one.jid, edges[one.jid], request)
  end
  return jids
end

-- Put several jobs, which may depend on each other.
function put.put_many(now, op)
  local jids, keyed = {}, false
  for i = 1, #op.jobs do
    jids[i] = op.jobs[i].jid
    keyed = keyed or op.jobs[i].unique
  end
  local again = answered(op, jids, keyed)
  if again then
    return again
  end
  put.check_distinct(op.jobs)
  put.check_budget(op.jobs, 'put_many')
  jids = put_all(now, op.jobs, keyed, 'put_many', op.request)
  if keyed then
    deduplication.remember('put_many', op.request, jids)
  end
  return jids
end

-- Put those of several jobs whose ids are free.
function put.put_new(now, op)
  put.check_distinct(op.jobs)
  local news, keyed = {}, false
  for i = 1, #op.jobs do
    local one = op.jobs[i]
    if not jobs.get(one.jid) then
      news[#news + 1] = one
      keyed = keyed or one.unique
    end
  end
  put.check_budget(news, 'put_new')
  local stand, count = put_all(now, news, keyed, 'put_new', ''), 0
  for i = 1, #news do
    count = count + (stand[i] == news[i].jid and 1 or 0)
  end
  return count
end

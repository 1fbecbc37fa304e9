-- Requests: opening them, adding sub-requests, closing, changing and canceling. Their rules are described in
-- qmodel/model/state/requests.py.

local request = {}

local REQUEST = 'request:' -- prefix of the name of a request's concurrency key

-- Forget sub-requests of a request; give how many are left.
local function forget(now, request)
  local left = requests.forget(request, catalogue.most)
  if left == 0 then
    store.emit(now, 'request_forgotten', request.id)
  end
  return left
end

-- Forget requests past retention: at least as many sub-requests as one operation adds, so that none accumulate.
local function sweep(now)
  for _, request in ipairs(requests.over(now - config.value('requests-history'))) do
    forget(now, request)
  end
end

-- Refuse to open a request again with other arguments.
local function check_same(request, op)
  if request.queue ~= op.queue then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'queue', request.queue)
  end
  if request.first_limit ~= op.limit then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'limit', request.first_limit)
  end
  if request.first_priority ~= op.priority then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'priority', request.first_priority)
  end
end

-- Create an open request.
local function open(now, op)
  local request = requests.create(op.id, op.queue, op.priority, op.limit, now)
  queues.register(now, op.queue)
  store.emit(now, 'request_opened', op.id, op.queue, op.priority, op.limit)
  requests.move(now, request, 'open')
  requests.save(request)
  return request
end

-- Open a request, unless it exists already.
function request.request_open(now, op)
  local request = requests.get(op.id)
  if request then
    check_same(request, op)
    return request.state
  end

  open(now, op)
  sweep(now)
  return 'open'
end

-- The sub-requests that the request does not know yet; or refuse.
local function news_of(puts, request, queue, operation)
  put.check_distinct(puts)
  for i = 1, #puts do
    local one = puts[i]
    if one.queue ~= queue or one.priority or one.ordered or one.unique then
      refusals.refuse('BAD_ARGUMENT', operation, 'jobs')
    end
  end
  local news = {}
  for i = 1, #puts do
    if not request or not requests.knows(request, puts[i].jid) then
      news[#news + 1] = puts[i]
    end
  end
  if #news > 0 and request and request.state ~= 'open' then
    refusals.refuse('REQUEST_STATE', request.id, request.state)
  end
  for i = 1, #news do
    if jobs.get(news[i].jid) then
      refusals.refuse('JOB_EXISTS', news[i].jid)
    end
    deduplication.check(news[i], operation)
    admission.check_throttles(news[i], operation)
  end
  put.check_budget(news, operation)
  return news
end

-- Put new sub-requests.
local function add(now, request, news, edges)
  for i = 1, #news do
    jobs.create(news[i].jid)
    requests.add(request, news[i].jid)
  end
  if #news > 0 then
    requests.save(request)
  end
  for i = 1, #news do
    put.put_one(now, news[i], edges[news[i].jid], '', request)
  end
end

-- Add sub-requests to an open request; known ones are skipped.
function request.request_add(now, op)
  local request = requests.find(op.id)
  local news = news_of(op.jobs, request, request.queue, 'request_add')
  local edges = put.check(news)

  add(now, request, news, edges)
  sweep(now)
  return #news
end

-- Close an open request.
local function close(now, request)
  if request.state == 'open' then
    store.emit(now, 'request_closed', request.id)
    requests.move(now, request, 'closed')
    request_end.conclude(now, request)
  end
end

-- Close a request: it ends with its last sub-request.
function request.request_close(now, op)
  local request = requests.find(op.id)

  close(now, request)
  return request.state
end

-- Open a request, add all its sub-requests, and close it.
function request.request_put(now, op)
  local request = requests.get(op.id)
  if request then
    check_same(request, op)
  end
  local news = news_of(op.jobs, request, op.queue, 'request_put')
  local edges = put.check(news)

  request = request or open(now, op)
  add(now, request, news, edges)
  close(now, request)
  sweep(now)
  return request.state
end

-- ---- looking

-- Show a request.
function request.request_get(now, op)
  local request = requests.get(op.id)
  if not request then
    return nil
  end
  local running = 0
  for _, job in ipairs(concurrency_keys.active(REQUEST .. op.id)) do
    if job.state == 'running' and tonumber(job.expires_at) > now then
      running = running + 1
    end
  end
  return requests.view(request, running)
end

-- List the requests in a state.
function request.requests(_, op)
  return {requests.page(op.state, op.offset, op.count)}
end

-- ---- changing

-- Change the priority of a job that has a slot; it keeps its ready time.
local function prioritize(job, priority)
  if job.state == 'waiting' or job.state == 'throttled' then
    state_index.leave(job)
    job.priority = priority
    state_index.enter(job)
  else
    job.priority = priority
  end
end

-- Change the priority or the limit of a request that has not ended.
function request.request_tune(now, op)
  local request = requests.find(op.id)
  if request.state ~= 'open' and request.state ~= 'closed' then
    refusals.refuse('REQUEST_STATE', request.id, request.state)
  end

  request.priority = op.priority or request.priority
  request.limit = op.limit or request.limit
  store.emit(now, 'request_tuned', request.id, request.priority, request.limit)
  requests.save(request)
  for _, job in ipairs(concurrency_keys.active(REQUEST .. op.id)) do
    if tonumber(job.priority) ~= request.priority then
      prioritize(job, request.priority)
    end
  end
  concurrency.fill_slots(now, REQUEST .. op.id)
  return request.state
end

-- As many of these jobs as the budget has room for, each with those of them that wait for it.
local function affordable(doomed)
  local among, chosen, order, units = {}, {}, {}, 0
  for _, jid in ipairs(doomed) do
    among[jid] = true
  end
  for _, jid in ipairs(doomed) do
    local group, met, at = chosen[jid] and {} or {jid}, {[jid] = true}, 1
    while group[at] do
      for _, other in ipairs(deduplication.dependents(jobs.load(group[at]))) do
        if among[other] and not chosen[other] and not met[other] then
          met[other] = true
          group[#group + 1] = other
        end
      end
      at = at + 1
    end
    for _, one in ipairs(group) do
      units = units + budget.weight(jobs.load(one))
    end
    if order[1] and not budget.fits(units, 0) then
      break
    end
    for _, one in ipairs(group) do
      chosen[one] = true
      order[#order + 1] = one
    end
  end
  return order
end

-- The sub-requests to cancel now (those with a slot that are not leased, then others), and the leased ones.
local function pick(request)
  local doomed, known, leased = {}, {}, {}
  for _, job in ipairs(concurrency_keys.active(REQUEST .. request.id)) do
    known[job.jid] = true
    if job.state == 'running' then
      leased[#leased + 1] = job
    else
      doomed[#doomed + 1] = job.jid
    end
  end
  for _, jid in ipairs(requests.unfinished(request, 2 * catalogue.most)) do
    if not known[jid] and #doomed < catalogue.most then
      doomed[#doomed + 1] = jid
    end
  end
  records.prefetch(doomed)
  return affordable(doomed), leased
end

-- Cancel a request: cancel sub-requests that are not running, and revoke the others.
function request.request_cancel(now, op)
  local request = requests.find(op.id)
  if requests.has_ended(request) then
    return 0
  end
  local doomed, leased = pick(request)
  remove.check_cancel(doomed)

  if request.state ~= 'canceling' then
    store.emit(now, 'request_canceled', request.id)
    requests.move(now, request, 'canceling')
    requests.save(request)
  end
  for _, job in ipairs(leased) do
    lease.revoke_one(now, job)
  end
  for _, jid in ipairs(doomed) do
    deletion.delete(now, jobs.load(jid))
  end
  request = requests.load(op.id)
  if #doomed == 0 then
    request_end.conclude(now, request)
  end
  return requests.left(request) - #leased
end

-- Forget sub-requests of an ended request, and with the last of them the request.
function request.request_forget(now, op)
  local request = requests.find(op.id)
  if not requests.has_ended(request) then
    refusals.refuse('REQUEST_STATE', request.id, request.state)
  end

  return forget(now, request)
end

-- Requests: opening them, adding sub-requests, closing, changing and canceling. Their rules are described in
-- qmodel/model/state/requests.py.

local request = {}

local REQUEST = 'request:' -- prefix of the name of a request's concurrency key

-- Forget sub-requests of a request; give how many are left.
local function forget(now, request, most)
  local left = requests.forget(request, most)
  if left == 0 then
    store.emit(now, 'request_forgotten', request.id)
  end
  return left
end

-- Forget requests past retention, unless jobs wait for them: at least as many sub-requests as one operation adds, so that
-- none accumulate.
local function sweep(now)
  for _, request in ipairs(requests.over(now - config.value('requests-history'))) do
    if dependencies.count(request) > 0 then
      requests.postpone(now, request)
    else
      forget(now, request, catalogue.most)
    end
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
  if request.fail_fast ~= (op.fail_fast and 1 or 0) then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'fail_fast', request.fail_fast)
  end
  local deadline_ms = request.deadline_at > 0 and request.deadline_at - request.opened_at or 0
  if deadline_ms ~= (op.deadline_ms or 0) then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'deadline_ms', deadline_ms)
  end
  if request.lease_ms ~= (op.lease_ms or 0) then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'lease_ms', request.lease_ms)
  end
  if request.keep_places ~= (op.keep_places and 1 or 0) then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'keep_places', request.keep_places)
  end
  local data = requests.data(request)
  if data ~= op.data then
    refusals.refuse('REQUEST_CONFLICT', request.id, 'data', #data .. ' bytes')
  end
end

-- Create an open request.
local function open(now, op)
  local request = requests.create(op.id, op.queue, op.priority, op.limit, now)
  requests.set_ends(now, request, op)
  requests.set_data(request, op.data)
  queues.register(now, op.queue)
  store.emit(now, 'request_opened', op.id, op.queue, op.priority, op.limit)
  requests.move(now, request, 'open')
  requests.save(request)
  return request
end

-- Renew the lease on a request, if it is open and has one.
local function renew(now, request)
  if request.state == 'open' and request.lease_ms > 0 then
    requests.renew(now, request)
    requests.save(request)
  end
end

-- Open a request, unless it exists already.
function request.request_open(now, op)
  local request = requests.get(op.id)
  if request then
    check_same(request, op)
    renew(now, request)
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
    stages.check(news[i], operation)
    deduplication.check(news[i], operation)
    admission.check_throttles(news[i], operation)
  end
  put.check_budget(news, operation)
  return news
end

-- Put new sub-requests.
local function add(now, request, news, edges)
  local jids = {}
  for i = 1, #news do
    jids[i] = news[i].jid
    jobs.create(jids[i])
    requests.add(request, jids[i])
  end
  if #news > 0 then
    requests.enlist(request, jids)
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
  local edges = put.check(news, op.id)

  renew(now, request)
  add(now, request, news, edges)
  sweep(now)
  return #news
end

-- Renew the lease on an open request.
function request.request_touch(now, op)
  local request = requests.find(op.id)
  if request.state ~= 'open' then
    refusals.refuse('REQUEST_STATE', request.id, request.state)
  end

  renew(now, request)
  return request.open_until
end

-- Close a request: it ends with its last sub-request.
function request.request_close(now, op)
  local request = requests.find(op.id)

  request_end.close(now, request)
  return request.state
end

-- Open a request, add all its sub-requests, and close it.
function request.request_put(now, op)
  local request = requests.get(op.id)
  if request then
    check_same(request, op)
  end
  local news = news_of(op.jobs, request, op.queue, 'request_put')
  local edges = put.check(news, op.id)

  request = request or open(now, op)
  add(now, request, news, edges)
  request_end.close(now, request)
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
  for _, expires_at in ipairs(records.expiries(concurrency_keys.holders(REQUEST .. op.id, catalogue.most))) do
    if expires_at > now then
      running = running + 1
    end
  end
  return requests.view(request, running)
end

-- The units for moving a job.
local function moving(jid)
  return budget.moving(jobs.load(jid))
end

-- The units for showing a sub-request.
local function showing(jid)
  local job = jobs.get(jid)
  return job and budget.moving(job) + 1 or 1
end

-- A sub-request and its outcome; and its job, unless that is no longer as it ended.
local function sub_request(now, jid, outcome, seq)
  local job = jobs.get(jid)
  if not job or outcome ~= '' and tonumber(job.seq) ~= seq then
    return {jid, outcome, '', '', ''}
  end
  local state = jobs.seen_at(now, job)
  if state == 'failed' then
    return {jid, outcome, state, job.group, job.message}
  end
  return {jid, outcome, state, '', state == 'complete' and job.result or ''}
end

-- List sub-requests in the order in which they were added.
function request.request_jobs(now, op)
  local request = requests.find(op.id)
  local page = requests.ordered(request, op.offset, op.count)
  budget.reach(page)
  local count = budget.afford(page, showing)
  page = {unpack(page, 1, count)}

  local outcomes, seqs = requests.ends_of(request, page)
  local shown = {}
  for i, outcome in ipairs(outcomes) do
    if outcome then
      shown[#shown + 1] = sub_request(now, page[i], outcome, seqs[i])
    end
  end
  local after = op.offset + count
  return {after < requests.count(request) and after or 0, shown}
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
    parked.recheck(job)
  else
    job.priority = priority
  end
end

-- The sub-requests with a slot that a new priority has not reached, as far as the budget goes, and how many are left.
local function behind(request)
  if not request.reached then
    return {}, 0
  end
  local others = request_cancellation.after(concurrency_keys.holders(REQUEST .. request.id, catalogue.most), request.reached)
  budget.reach(others)
  local count, found = budget.afford(others, moving), {}
  request.reached = count < #others and others[count]
  for i = 1, count do
    found[i] = jobs.load(others[i])
  end
  return found, #others - count
end

-- The wanted limit, or as many slots as the budget can fill, at least one unless there were `some` before.
local function affordable_limit(request, wanted, some)
  local name = REQUEST .. request.id
  local free = concurrency_keys.free_slots(name) + wanted - request.limit
  local waiting = concurrency_keys.first_parked(name, free)
  budget.reach(waiting)
  local filled = budget.afford(waiting, moving, some)
  return filled < #waiting and wanted - free + filled or wanted
end

-- Change the priority or the limit of a request that has not ended; give how many sub-requests are left to change.
function request.request_tune(now, op)
  local request = requests.find(op.id)
  if request.state ~= 'open' and request.state ~= 'closed' then
    refusals.refuse('REQUEST_STATE', request.id, request.state)
  end

  if op.priority and op.priority ~= request.priority then
    request.priority, request.reached = op.priority, ''
  end
  local found, left = behind(request)
  local wanted = op.limit or request.limit
  request.limit = affordable_limit(request, wanted, found[1] ~= nil)
  store.emit(now, 'request_tuned', request.id, request.priority, request.limit)
  requests.save(request)
  for _, job in ipairs(found) do
    if tonumber(job.priority) ~= request.priority then
      prioritize(job, request.priority)
    end
  end
  concurrency.fill_slots(now, REQUEST .. op.id, concurrency_keys.free_slots(REQUEST .. op.id))
  return left + wanted - request.limit
end

-- Cancel a request: cancel sub-requests that are not running, and revoke the others.
function request.request_cancel(now, op)
  local request = requests.find(op.id)
  if requests.has_ended(request) then
    return 0
  end
  local leased, doomed, reached = request_cancellation.pick(request, 0, true)
  remove.check_cancel(doomed)

  if request.state ~= 'canceling' then
    store.emit(now, 'request_canceled', request.id)
    requests.move(now, request, 'canceling')
  end
  request.reason, request.ending, request.reached = 'canceled', 0, reached
  requests.save(request)
  for _, job in ipairs(leased) do
    failure.revoke_one(now, job)
  end
  for _, jid in ipairs(doomed) do
    deletion.delete(now, jobs.load(jid))
  end
  request = requests.load(op.id)
  if #doomed == 0 then
    request_end.conclude(now, request)
  end
  local holders = concurrency_keys.holders(REQUEST .. op.id, catalogue.most)
  return requests.left(request) - (#holders - #request_cancellation.after(holders, reached))
end

-- Whether a job is as it ended as a sub-request, no other job depends on it, and one operation may delete it.
local function is_own(job, outcome, seq)
  local as_ended = outcome == 'done' and job.state == 'complete' or outcome == 'failed' and job.state == 'failed'
  return as_ended and tonumber(job.seq) == seq and job.waited_for == '0' and dependencies.is_bounded(job)
end

-- How many sub-requests a call forgets with their jobs, as far as its budget goes; the jobs to delete, and how many others
-- stay.
local function own_jobs(request)
  local jids, outcomes, seqs = requests.first_ended(request, catalogue.most)
  local doomed, stay, units = {}, 0, 0
  budget.reach(jids)
  for i = 1, #jids do
    local job = jobs.get(jids[i])
    units = units + (job and budget.weight(job) or 1)
    if i > 1 and not budget.fits(units, 0) then
      return i - 1, doomed, stay
    elseif job and is_own(job, outcomes[i], seqs[i]) then
      doomed[#doomed + 1] = job
    elseif job then
      stay = stay + 1
    end
  end
  return #jids, doomed, stay
end

-- Forget sub-requests of an ended request, and with the last of them the request; delete their jobs, if asked.
function request.request_forget(now, op)
  local request = requests.find(op.id)
  if not requests.has_ended(request) then
    refusals.refuse('REQUEST_STATE', request.id, request.state)
  end
  local dependent = dependencies.dependents(dependencies.record_of(request))[1]
  if dependent then
    refusals.refuse('HAS_DEPENDENTS', arguments.after_request(request.id), dependent)
  end
  local reached, doomed, stay = catalogue.most, {}, 0
  if op.delete_jobs then
    reached, doomed, stay = own_jobs(request)
  end

  for _, job in ipairs(doomed) do
    deletion.delete_any(now, job)
  end
  return {forget(now, request, reached), #doomed, stay}
end

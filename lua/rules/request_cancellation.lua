-- How a request is canceled: by a call, or by the engine because of its deadline or of a failed sub-request. The rules are
-- described in qmodel/model/rules/request_cancellation.py.

local request_cancellation = {}

local REQUEST = 'request:' -- prefix of the name of a request's concurrency key

-- Those of some ids that come after one.
function request_cancellation.after(ids, first)
  local found = {}
  for _, id in ipairs(ids) do
    if config.before(first, id) then
      found[#found + 1] = id
    end
  end
  return found
end

-- Whether a sub-request is not deleted: a leased one, or one that has begun, unless those are canceled too.
local function stays(job, begun)
  return job.state == 'running' or not begun and tonumber(job.token) > 0
end

-- A job to cancel with those among the others that wait for it; nothing if it stays or is chosen already.
local function group_with(job, among, chosen, begun)
  if stays(job, begun) or chosen[job.jid] then
    return {}
  end
  local group, met, at = {job.jid}, {[job.jid] = true}, 1
  while group[at] do
    for _, other in ipairs(deduplication.dependents(jobs.load(group[at]))) do
      if among[other] and not chosen[other] and not met[other] then
        met[other] = true
        if not stays(jobs.load(other), begun) then
          group[#group + 1] = other
        end
      end
    end
    at = at + 1
  end
  return group
end

-- The sub-requests to cancel or to revoke, up to 1000, those with a slot first; all with a slot; and the last one of these
-- that the call before has reached. If that was the end, it begins again. Without `begun`, those that have begun and have no
-- slot are left out: however many they are, the others are reached.
local function wanted(request, begun)
  local reached = request.state == 'canceling' and request.reached or ''
  local holders = concurrency_keys.holders(REQUEST .. request.id, catalogue.most)
  local found, known = request_cancellation.after(holders, reached), {}
  for _, jid in ipairs(holders) do
    known[jid] = true
  end
  for _, jid in ipairs(requests.unfinished(request, 2 * catalogue.most, begun)) do
    if not known[jid] and #found < catalogue.most then
      found[#found + 1] = jid
    end
  end
  if found[1] then
    return found, known, reached
  end
  return holders, known, ''
end

-- The leased sub-requests, the others to cancel, and the last one with a slot that is reached; as far as the budget goes.
function request_cancellation.pick(request, kept, begun)
  local some, known, reached = wanted(request, begun)
  local leased, chosen, order, among, units = {}, {}, {}, {}, 0
  for _, jid in ipairs(some) do
    among[jid] = true
  end
  budget.reach(some)
  for _, jid in ipairs(some) do
    local job = jobs.load(jid)
    local group = group_with(job, among, chosen, begun)
    units = units + (begun and job.state == 'running' and budget.FAILURE + budget.weight(job) or 0)
    for _, one in ipairs(group) do
      units = units + budget.weight(jobs.load(one))
    end
    if (order[1] or leased[1]) and not budget.fits(units, kept) then
      return leased, order, reached, false
    end
    if begun and job.state == 'running' then
      leased[#leased + 1] = job
    end
    for _, one in ipairs(group) do
      chosen[one] = true
      order[#order + 1] = one
    end
    if known[jid] then
      reached = jid
    end
  end
  return leased, order, reached, #some < catalogue.most
end

-- ---- by the engine

-- Those of some jobs on which, directly or not, a job depends that is not among them, or that stays because it has more
-- dependencies than one operation may end.
local function with_others_waiting(doomed)
  local among, found, turn = {}, {}, {}
  for _, jid in ipairs(doomed) do
    among[jid] = true
  end
  for _, jid in ipairs(doomed) do
    local job = jobs.load(jid)
    local left = not dependencies.is_bounded(job)
    for _, other in ipairs(not left and deduplication.dependents(job) or {}) do
      left = left or not among[other]
    end
    if left then
      found[jid] = true
      turn[#turn + 1] = jid
    end
  end
  local at = 1
  while turn[at] do
    for _, other in ipairs(dependencies.of(jobs.load(turn[at]))) do
      if among[other] and not found[other] then
        found[other] = true
        turn[#turn + 1] = other
      end
    end
    at = at + 1
  end
  return found
end

-- End the cancellation. The sub-requests that have begun may have the free slots: parked ones get them, as long as the
-- budget leaves `kept`; if it does not suffice, the next pop continues.
local function go_on(now, request, kept)
  local name, through = REQUEST .. request.id, 0
  request.ending = 0
  for _, jid in ipairs(concurrency_keys.first_parked(name, concurrency_keys.free_slots(name))) do
    if not budget.take(budget.SLOT + budget.moving(jobs.load(jid)), kept, through > 0) then
      request.ending = 1
      break
    end
    through = through + 1
  end
  concurrency.fill_slots(now, name, through)
  requests.save(request)
end

-- Cancel sub-requests, as long as the budget leaves `kept`, then let the others go on; say whether none is left to cancel.
local function cancel_part(now, request, kept)
  local leased, doomed, reached, whole = request_cancellation.pick(request, kept, request.reason == 'deadline')
  request.reached, request.ending = reached, 1
  requests.save(request)
  local failing = with_others_waiting(doomed)
  for _, job in ipairs(leased) do
    failure.revoke_one(now, job)
  end
  for _, jid in ipairs(doomed) do
    local job = jobs.load(jid)
    if failing[jid] then
      failure.revoke_one(now, job)
    else
      deletion.delete(now, job)
    end
  end
  if whole then
    go_on(now, request, kept)
  end
  if not requests.has_ended(request) then
    request_end.conclude(now, request)
  end
  return whole
end

-- Whether sub-requests with a slot are left that the cancellation has not reached.
local function has_more(request)
  local holders = concurrency_keys.holders(REQUEST .. request.id, catalogue.most)
  return #request_cancellation.after(holders, request.reached or '') > 0
end

-- Close and cancel the due requests of a queue, as far as half of the budget goes; say whether sub-requests are left that
-- a pop might hand out.
function request_cancellation.end_due(now, queue)
  local kept = math.floor(budget.room() / 2)
  local found = requests.due(queue, now, catalogue.most)
  for i, request in ipairs(found) do
    if not budget.take(1, kept, i > 1) then
      return true
    end
    if requests.is_late(now, request) and request.reason ~= 'deadline' then
      request_end.begin_cancellation(now, request, 'deadline')
    end
    if request.ending == 0 then
      request_end.close(now, request, 'lapsed')
    elseif not cancel_part(now, request, kept) then
      return i < #found or has_more(request)
    end
  end
  return false
end

-- ---- for a read

-- The sub-requests with a slot that the next pop would cancel, as far as a quarter of the budget goes; and how many.
function request_cancellation.doomed(now, queue)
  local kept, found, count = math.floor(budget.room() / 4) * 3, {}, 0
  for _, request in ipairs(requests.due(queue, now, catalogue.most)) do
    local holders = concurrency_keys.holders(REQUEST .. request.id, catalogue.most)
    if not budget.take(1 + #holders, kept, true) then
      break
    end
    for _, jid in ipairs(holders) do
      if request_cancellation.is_doomed(now, jobs.load(jid)) then
        found[jid], count = true, count + 1
      end
    end
  end
  return found, count
end

-- Whether the next pop of its queue would cancel a sub-request.
function request_cancellation.is_doomed(now, job)
  local id = options.get(job, 'request')
  if not id then
    return false
  end
  local request = requests.load(id)
  if job.queue ~= request.queue then
    return false
  end
  return requests.is_late(now, request) or request.ending == 1 and not stays(job, request.reason == 'deadline')
end

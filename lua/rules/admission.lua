-- Admission by throttles: which jobs may be claimed, and how parked jobs continue when a throttle opens. The rules are
-- described in qmodel/model/rules/admission.py.

local admission = {}

local THROTTLES_MOST = 100
local CHUNK = 100
local NONE = {0, 0}

-- Refuse throttles of which one is a queue's own.
function admission.check_names(named, operation)
  for _, name in ipairs(named) do
    if string.sub(name, 1, #throttles.OWN) == throttles.OWN then
      refusals.refuse('BAD_ARGUMENT', operation, 'throttles')
    end
  end
end

-- Refuse a job that names a queue's own throttle, or that costs more than the capacity of one of its buckets.
function admission.check_throttles(op, operation)
  local named = {}
  for i, name in ipairs(op.throttles or {}) do
    named[i] = name
  end
  admission.check_names(named, operation)
  if not op.cost then
    return
  end
  named[#named + 1] = throttles.OWN .. op.queue
  for _, name in ipairs(named) do
    local capacity = throttles.of(name).capacity
    if capacity > 0 and op.cost > capacity then
      refusals.refuse('OVER_CAPACITY', op.jid, name, op.cost, capacity)
    end
  end
end

-- Add two counts with their costs.
local function sum(one, other)
  return {one[1] + other[1], one[2] + other[2]}
end

-- Whether a queue's own throttle is open to a job.
function admission.admits(now, queue, job, passed, holds)
  local own = throttles.own(queue)
  if not own then
    return true
  end
  return throttles.opens_at(now, own, throttles.cost(job), passed[own] or NONE, holds) <= now
end

-- How many of its ready jobs a queue may hand out by its own throttle: 0 or 1, because they are asked for one at a
-- time.
function admission.admitted(now, queue, passed)
  local heads = queues.next_ready(queue, 1)
  return heads[1] and admission.admits(now, queue, heads[1], passed, false) and 1 or 0
end

-- Park a lifted job. A job that was parked before, and has not run since, keeps its turn.
local function park(now, job, name, opens)
  local seq = store.emit(now, 'throttled', job.jid, job.queue, name)
  options.set(job, 'gate', name)
  if not options.get(job, 'parked') then
    options.set(job, 'parked', seq)
  end
  job.worker, job.grant = '', ''
  job.expires_at = 0
  jobs.place(job, 'throttled')
  parked.lower(job.queue, name, opens)
end

-- Whether all throttles that a lifted job names are open to it; if not, park it at the first closed one.
function admission.passes(now, job, passed, holds)
  if job.options == '' and not throttles.own(job.queue) then
    return true
  end
  local named, cost = throttles.named(job), throttles.cost(job)
  local throttle = options.get(job, 'gate')
  parked.unreserve(job)
  if not holds then
    options.drop(job, 'released')
  end
  for _, name in ipairs(named) do
    local before = passed[name] or NONE
    if not holds and throttle ~= name then
      before = sum(before, parked.admitted(job.queue, name, job.priority, parked.turn(job)))
    end
    local opens = throttles.opens_at(now, name, cost, before, holds)
    if not holds and throttle ~= name and parked.is_behind(job, name) then
      opens = throttles.NEVER
    end
    if opens > now then
      park(now, job, name, opens)
      return false
    end
  end
  for _, name in ipairs(throttles.passed_by(job)) do
    passed[name] = sum(passed[name] or NONE, {1, throttles.taken(name, cost)})
  end
  parked.forget_throttle(job)
  return true
end

-- Let a lifted job pass its throttles, whoever was admitted or is parked at those that it names: the rule of reqless.
-- Give the first closed one, or false, and when it opens.
function admission.pass_alone(now, job, passed)
  if job.options == '' and not throttles.own(job.queue) then
    return false
  end
  parked.unreserve(job)
  options.drop(job, 'released')
  local cost = throttles.cost(job)
  for _, name in ipairs(throttles.named(job)) do
    local opens = throttles.opens_at(now, name, cost, passed[name] or NONE, false)
    if opens > now then
      return name, opens
    end
  end
  for _, name in ipairs(throttles.passed_by(job)) do
    passed[name] = sum(passed[name] or NONE, {1, throttles.taken(name, cost)})
  end
  parked.forget_throttle(job)
  return false
end

-- Park a lifted job behind all others, and note so in its history if it was not parked since its last claim.
function admission.park_last(now, job, name, opens)
  if not options.get(job, 'gate') then
    history.add(now, job, 'throttled', job.queue, name)
  end
  parked.forget_throttle(job)
  park(now, job, name, opens)
end

-- Charge a claim to every throttle that the job passes.
function admission.claimed(now, job)
  if job.options == '' and not store.config then
    return
  end
  for _, name in ipairs(throttles.passed_by(job)) do
    throttles.spend(now, name, throttles.cost(job), job.token)
  end
end

-- Move a parked job to the end of its priority. It keeps its turn at the throttle, in case that closes first.
local function unpark(now, job, name)
  local parked = options.get(job, 'parked')
  store.emit(now, 'unthrottled', job.jid, job.queue, name)
  jobs.lift(job)
  options.set(job, 'gate', name)
  options.set(job, 'parked', parked)
  job.ready_at = now
  jobs.place(job, 'waiting')
end

-- Park a waiting job if one of its throttles is closed, or admit a parked one: the rules of reqless.
function admission.park_or_admit(now, job)
  local gate = options.get(job, 'gate')
  if job.state == 'throttled' and gate then
    unpark(now, job, gate)
  elseif job.state == 'waiting' then
    local cost = throttles.cost(job)
    for _, name in ipairs(throttles.named(job)) do
      local opens = throttles.opens_at(now, name, cost, NONE, false)
      if opens > now then
        jobs.lift(job)
        admission.park_last(now, job, name, opens)
        return
      end
    end
  end
end

-- Admit the first jobs parked at a throttle, as far as it has room; then note when there may be more room.
local function admit_from(now, queue, name, passed, most, kept)
  local waiting = parked.admitted(queue, name, '+inf', throttles.NEVER)
  local before = sum(passed[name] or NONE, waiting)
  local through, opens = 0, 0
  for _, job in ipairs(parked.parked(queue, name, math.min(most, CHUNK))) do
    if not budget.take(budget.moving(job), kept, through > 0) then
      break
    end
    opens = throttles.opens_at(now, name, throttles.cost(job), before, false)
    if opens > now then
      break
    end
    unpark(now, job, name)
    before = sum(before, {1, throttles.cost(job)})
    through = through + 1
  end
  parked.expect(queue, name, opens > now and waiting[1] + through > 0 and throttles.NEVER or opens)
  return through
end

-- Admit parked jobs of a queue whose throttles may have opened, up to `most` and half of the budget; give how many.
-- `alone`: only at throttles that may open although no job leaves them.
function admission.admit_parked(now, queue, passed, most, alone)
  local through, kept, some = 0, math.floor(budget.room() / 2), false
  for _, name in ipairs(parked.due(queue, now, THROTTLES_MOST)) do
    if not budget.take(budget.THROTTLE, kept, some) then
      break
    end
    some = true
    if through < most and (not alone or throttles.opens_alone(name)) then
      through = through + admit_from(now, queue, name, passed, most - through, kept)
    end
  end
  return through
end

-- The next time at which throttles may admit a job of a queue by themselves, or 0.
function admission.opens_at(now, name)
  local first = parked.open_at(name)
  if first < throttles.NEVER then
    first = math.max(first, now)
  end
  local own = throttles.own(name)
  local function look(heads, holds)
    for _, job in ipairs(heads) do
      local opens = throttles.opens_at(now, own, throttles.cost(job), NONE, holds)
      if opens > now then
        first = math.min(first, opens)
      end
    end
  end
  if own then
    look(queues.lapsed(name, now - config.value('grace-period'), 1), true)
    look(queues.next_ready(name, 1), false)
  end
  return first < throttles.NEVER and first or 0
end

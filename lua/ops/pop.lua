-- Taking jobs out of queues: pop and peek.

local pop = {}

local CHUNK = 100

local LAPSED = 'Its lease ran out, and no retries remained.'
local OFTEN = 'Its lease ran out once more than its max_lapses.'
local TOO_LONG = 'It ran for longer than its timeout, and no retries remained.'

-- Whether a job has no retry left for a lapse; one with `max_lapses`, no lapse.
local function is_spent(job)
  local most = options.get(job, 'max_lapses')
  if not most then
    return tonumber(job.remaining) == 0
  end
  return tonumber(options.get(job, 'lapses') or 0) >= tonumber(most)
end

-- Fail a job with a lapsed lease that may not run again.
local function fail_spent(now, job, too_long)
  if options.get(job, 'max_lapses') then
    failure.fail_job(now, job, 'failed-lapses-' .. job.queue, OFTEN)
  else
    failure.fail_job(now, job, 'failed-retries-' .. job.queue, too_long and TOO_LONG or LAPSED)
  end
end

-- Count a lapse as a retry; for a job with `max_lapses`, by itself.
local function count_lapse(job)
  if options.get(job, 'max_lapses') then
    options.set(job, 'lapses', (options.get(job, 'lapses') or 0) + 1)
  else
    job.remaining = job.remaining - 1
  end
end

-- Let a job that was taken back wait from the end of its lease; it may not run again now.
local function delay(now, job, delay_ms)
  job.worker, job.grant = '', ''
  job.expires_at = 0
  job.ready_at = job.ready_at + delay_ms
  concurrency.wait_for_time(now, job)
  store.emit(now, 'delayed', job.jid, job.queue, job.ready_at)
  jobs.place(job, 'scheduled')
  return false
end

-- Take a job with a lapsed lease out of its list; say whether it may run again. A lapse counts as a retry, unless the job
-- has a limit of lapses; a job without any left fails.
local function take_back(now, job)
  if job.state == 'stalled' then
    jobs.lift(job)
    return true
  end
  local worker, token = job.worker, job.token
  local too_long, told = lease.ran_too_long(job), options.get(job, 'told')
  if not told then
    store.emit(now, 'lock_lost', job.jid, job.queue, worker, token, too_long and 'timeout' or 'lapsed')
  end
  jobs.lift(job)
  if not told then
    history.add(now, job, too_long and 'timed_out' or 'lapsed', worker, token)
  end
  job.ready_at = job.expires_at
  if failure.is_revoked(job) then
    failure.fail_revoked(now, job)
    return false
  end
  if is_spent(job) then
    fail_spent(now, job, too_long)
    return false
  end
  local delay_ms = backoff.delay(job)
  count_lapse(job)
  if not told then
    stats.retried(now, job.queue)
  end
  return job.ready_at + delay_ms <= now or delay(now, job, delay_ms)
end

-- Whether a job with a lapsed lease waits before it may run again.
local function waits(now, job)
  return job.state == 'running' and job.expires_at + backoff.delay(job) > now
end

-- Whether this pop admits no further parked job.
local function all_admitted(now, queue, through)
  return through == catalogue.most or budget.is_cut() or #parked.due(queue, now, 1) == 0
end

-- Take ready jobs that have not expired and that pass their throttles, as far as the budget goes. It examines about 1000
-- others at most.
local function ready(now, queue, count, passed)
  local taken, closed, through, left, own = {}, 0, 0, count, throttles.own(queue)
  while left > 0 and closed < catalogue.most do
    if queues.has_parked(queue) then
      through = through + admission.admit_parked(now, queue, passed, catalogue.most - through)
    end
    local wanted = own and admission.admitted(now, queue, passed) or math.min(left, CHUNK)
    local found, before = queues.take(queue, wanted), left
    budget.spend(own and budget.ALONE or 0)
    local fit = budget.afford(found, budget.weight, taken[1] ~= nil or closed > 0)
    local live = failure.expire_taken(now, queues.keep_taken(queue, found, fit))
    for i = 1, #live do
      local job = live[i]
      if not own and job.options == '' or admission.passes(now, job, passed, false) then
        taken[#taken + 1] = job
      end
    end
    if fit < #found then
      break
    end
    left = count - #taken
    closed = closed + #found - (before - left)
    if left > 0 and #found < math.max(wanted, 1) and all_admitted(now, queue, through) then
      break
    end
  end
  return taken
end

-- Whether a job with an ended lease need not pass its throttles again: a released stalled one must.
local function counts(job)
  return job.state == 'running' or not options.get(job, 'released')
end

-- Whether a job with a lapsed lease may not run again.
local function fails(job)
  return job.state == 'running' and (is_spent(job) or failure.is_revoked(job))
end

-- Move a job that has become due into the order, or park it at its concurrency key.
local function promote(now, job)
  if concurrency.admit(job) ~= 'waiting' then
    jobs.lift(job)
    concurrency.place(now, job, 'throttled')
  else
    queues.promote(job)
  end
end

-- Move jobs that have become due into the order, as far as half of the budget goes.
local function promote_due(now, queue)
  local kept, some = math.floor(budget.room() / 2), false
  for _, job in ipairs(queues.due(queue, now, catalogue.most)) do
    if not budget.take(budget.moving(job), kept, some) then
      queues.is_late(job)
      break
    end
    some = true
    store.emit(now, 'promoted', job.jid, job.queue)
    promote(now, job)
  end
end

-- The units for taking back an ended lease: its job may give its slot to another one.
local function taking_back(now, job)
  if fails(job) or waits(now, job) then
    return concurrency.ending(job)
  end
  return budget.weight(job) + parked.freeing(job)
end

-- Take back ended leases until `count` jobs may run again (others may fail), as far as half of the budget goes.
local function ended_(now, queue, count, passed)
  local moment = now - config.value('grace-period')
  local taken = {}
  local kept, some = math.floor(budget.room() / 2), false
  local found = queues.lapsed(queue, moment, count)
  while found[1] do
    for _, job in ipairs(found) do
      local units = taking_back(now, job)
      if some and not budget.fits(units, kept) or not admission.admits(now, queue, job, passed, true) then
        return taken
      end
      some = true
      budget.spend(units)
      local counts_ = counts(job)
      if take_back(now, job) and admission.passes(now, job, passed, counts_) then
        taken[#taken + 1] = job
      end
      if #taken == count then
        return taken
      end
    end
    found = queues.lapsed(queue, moment, CHUNK)
  end
  return taken
end

-- Take the next jobs out of their lists: stalled jobs first, then ready ones in order, including due jobs and due runs.
local function next_(now, queue, count)
  local passed = {}
  if not queues.is_due(queue, now) then
    return ready(now, queue, count, passed)
  end
  local taken = ended_(now, queue, count, passed)
  failure.expire_due(now, queue, catalogue.most)
  runs.fire_due(now, queue, catalogue.most)
  promote_due(now, queue)
  for _, job in ipairs(ready(now, queue, count - #taken, passed)) do
    taken[#taken + 1] = job
  end
  return taken
end

-- Tell the holder of a lapsed lease, which then has another grace-period.
local function tell(now, job, grace)
  store.emit(now, 'lock_lost', job.jid, job.queue, job.worker, job.token, 'lapsed')
  history.add(now, job, 'told', job.worker, job.token)
  stats.retried(now, job.queue)
  options.set(job, 'told', tonumber(job.expires_at))
  if grace > 0 then
    queues.renew(job, now + grace)
  end
end

-- Take jobs out of the locks: stalled ones, and those whose holder was told and whose grace is over. Tell the holders of
-- the others.
local function take(now, queue, found, count, passed)
  local grace = config.value('grace-period')
  local taken = {}
  local kept, some = math.floor(budget.room() / 2), false
  for _, job in ipairs(found) do
    if #taken == count or not budget.take(taking_back(now, job), kept, some) then
      break
    end
    some = true
    local first = job.state == 'running' and (grace <= 0 or not options.get(job, 'told'))
    if first then
      tell(now, job, grace)
    end
    if not first or grace <= 0 then
      if not admission.admits(now, queue, job, passed, true) then
        break
      end
      local counts_ = counts(job)
      if take_back(now, job) and admission.passes(now, job, passed, counts_) then
        taken[#taken + 1] = job
      end
    end
  end
  return taken
end

-- Make due jobs ready from now, up to `most`; of one moment the later names come first, as in qless.
local function notice_due(now, queue, most)
  local found = {}
  for i, job in ipairs(queues.due(queue, now, most + 1, true)) do
    if i <= most then
      found[i] = job
    else
      queues.is_late(job)
    end
  end
  table.sort(found, function(one_job, other_job)
    return config.before(other_job.jid, one_job.jid)
  end)
  for _, job in ipairs(found) do
    store.emit(now, 'promoted', job.jid, job.queue)
    jobs.lift(job)
    job.ready_at = now
    concurrency.place(now, job, concurrency.admit(job))
  end
end

-- The first jobs in a state, up to `most`: leases that end first, or ended leases by id in reverse.
local function in_state(found, state, most)
  local all = {}
  for _, job in ipairs(found) do
    if job.state == state then
      all[#all + 1] = job
    end
  end
  table.sort(all, function(one_job, other_job)
    local one, other = tonumber(one_job.expires_at), tonumber(other_job.expires_at)
    if state == 'stalled' then
      return config.before(other_job.jid, one_job.jid)
    end
    return one < other or one == other and config.before(one_job.jid, other_job.jid)
  end)
  return {unpack(all, 1, math.min(most, #all))}
end

-- Take the next jobs out of their lists by the rules of qless: those whose grace is over, then stalled ones, then ready
-- ones in order, with as many due jobs and due runs as are wanted.
local function next_of_qless(now, queue, count)
  local passed = {}
  if not queues.is_due(queue, now) then
    return ready(now, queue, count, passed)
  end
  local found = queues.lapsed(queue, now, catalogue.most, true)
  local taken = take(now, queue, in_state(found, 'running', count), count, passed)
  failure.expire_due(now, queue, catalogue.most)
  local left = count - #taken
  if left > 0 then
    runs.fire_due(now, queue, left, true)
    notice_due(now, queue, left)
    for _, job in ipairs(take(now, queue, in_state(found, 'stalled', left), left, passed)) do
      taken[#taken + 1] = job
    end
  end
  for _, job in ipairs(ready(now, queue, count - #taken, passed)) do
    taken[#taken + 1] = job
  end
  return taken
end

-- Lift the first jobs of a queue that are live; say whether the budget has cut them, and which are stalled still.
local function head(now, queue, count, stalled, some)
  local again = {unpack(stalled, 1, math.min(count, #stalled))}
  local found, both = queues.take(queue, count - #again), {unpack(again)}
  for i = 1, #found do
    both[#both + 1] = found[i]
  end
  local fit = budget.afford(both, budget.weight, some)
  local lifted = {unpack(again, 1, math.min(fit, #again))}
  for _, job in ipairs(lifted) do
    jobs.lift(job)
  end
  local fresh = queues.keep_taken(queue, found, math.max(fit - #again, 0))
  for _, job in ipairs(failure.expire_taken(now, fresh)) do
    lifted[#lifted + 1] = job
  end
  return lifted, fit < #both, {unpack(stalled, #again + 1)}
end

-- Let lifted jobs pass their throttles; say whether all did.
local function sift(now, found, passed, taken, closed)
  local before = #closed
  for _, job in ipairs(found) do
    local name, opens = admission.pass_alone(now, job, passed)
    if name then
      closed[#closed + 1] = {job, name, opens}
    else
      taken[#taken + 1] = job
    end
  end
  return #closed == before
end

-- How many jobs a queue may hand out by its own throttle, stalled ones first: 0 or 1.
local function next_alone(now, queue, stalled, passed)
  budget.spend(budget.ALONE)
  if stalled[1] then
    return admission.admits(now, queue, stalled[1], passed, true) and 1 or 0
  end
  return admission.admitted(now, queue, passed)
end

-- Take jobs from the head of a queue, stalled ones first, in so many tries and as far as the budget goes; park those that
-- meet a closed throttle, in the order of their ids. A queue with a throttle of its own hands them out one at a time, in
-- one try as long as none is parked.
local function heads(now, queue, count, tries, stalled)
  local taken, closed, passed, own, some = {}, {}, {}, throttles.own(queue), false
  while tries > 0 and #taken < count and #taken + #closed < catalogue.most do
    local wanted = own and next_alone(now, queue, stalled, passed) or count - #taken
    local found, cut
    found, cut, stalled = head(now, queue, wanted, stalled, some)
    local all_pass = sift(now, found, passed, taken, closed)
    if cut or own and wanted == 0 or not (own or found[1]) then
      break
    end
    some = true
    if not own or not all_pass then
      tries = tries - 1
    end
  end
  table.sort(closed, function(one, other)
    local one_job, other_job = one[1], other[1]
    return config.before(one_job.jid, other_job.jid)
  end)
  for _, one in ipairs(closed) do
    admission.park_last(now, one[1], one[2], one[3])
  end
  return taken
end

-- Take the next jobs out of their lists by the rules of reqless: without tries those whose grace is over, otherwise the
-- others.
local function next_of_reqless(now, queue, count, tries)
  local is_due = queues.is_due(queue, now)
  local found = is_due and queues.lapsed(queue, now, catalogue.most, true) or {}
  if tries == 0 then
    return take(now, queue, in_state(found, 'running', count), count, {})
  end
  if is_due then
    failure.expire_due(now, queue, catalogue.most)
    runs.fire_due(now, queue, count, true)
    notice_due(now, queue, count)
  end
  if queues.has_parked(queue) then
    admission.admit_parked(now, queue, {}, catalogue.most, true)
  end
  return heads(now, queue, count, tries, in_state(found, 'stalled', catalogue.most))
end

-- Lease a lifted job to a worker, for which it has waited since a moment.
local function claim(now, job, worker, request, since)
  local wait_ms = math.max(now - since, 0)
  stats.waited(now, job, worker, wait_ms)
  job.token = epochs.token(store.emit(now, 'popped', job.jid, job.queue, worker, wait_ms))
  admission.claimed(now, job)
  job.worker = worker
  job.grant = request
  job.popped_at = now
  if job.options ~= '' then
    job.expires_at = lease.expiry(now, job)
    options.drop(job, 'ttl_ms')
    options.drop(job, 'ended')
  else
    job.expires_at = now + config.heartbeat(job.queue)
    store.text(job.expires_at) -- makes its text once, for all later writes
  end
  history.add(now, job, 'popped', worker, job.token)
  jobs.place(job, 'running')
end

-- Move the first jobs that became ready before the option `aging` was set to their places by age.
local function age(queue)
  for _, job in ipairs(queues.unaged(queue, CHUNK)) do
    local units = budget.moving(job)
    if budget.room() < units then
      break
    end
    budget.spend(units)
    queues.age(job)
  end
end

-- Take the next jobs of a queue, unless it is paused, and lease them; add their ids and their views to lists.
local function lease(now, queue, worker, count, request, jids, shown, qless, tries)
  local paused = queues.has_pauses(queue) and suspension.holds(now, queue)
  local granted, gives = {}, not paused and not (queues.is_due(queue, now) and request_cancellation.end_due(now, queue))
  if gives then
    if qless and tries then
      granted = next_of_reqless(now, queue, count, tries)
    else
      granted = qless and next_of_qless(now, queue, count) or next_(now, queue, count)
    end
  end
  workers.expect(request, count + #jids)
  for i = 1, #granted do
    local job = granted[i]
    claim(now, job, worker, request, qless and math.max(tonumber(job.put_at), tonumber(job.popped_at)) or job.ready_at)
    jids[#jids + 1] = job.jid
    shown[#shown + 1] = jobs.view(now, job)
  end
  if gives then
    age(queue)
  end
end

-- Count the caller as idle. Wake one worker if the pop has left work to the next one.
local function await_work(queue)
  queues.await_work(queue)
  if budget.is_cut() then
    queues.wake_one(queue)
  end
end

-- Lease up to `count` jobs, and remember the grant under the request.
function pop.grant(now, queue, worker, count, wait, request, qless, tries)
  workers.seen(now, worker, qless)
  local jids, shown = {}, {}
  lease(now, queue, worker, count, request, jids, shown, qless, tries)
  if #jids > 0 then
    workers.remember(worker, request, jids)
  elseif wait then
    await_work(queue)
  end
  return propagation.propagate(now) and jobs.views(now, jids) or shown -- a repeated call shows the same
end

-- Lease the next jobs of a queue to a worker.
function pop.pop(now, op)
  local again = workers.granted(op.worker, op.request)
  if #again > 0 then
    return jobs.views(now, again)
  end

  return pop.grant(now, op.queue, op.worker, op.count, op.wait, op.request, op.qless, op.tries)
end

-- Drop repeated names.
local function distinct(names)
  local found, met = {}, {}
  for _, name in ipairs(names) do
    if not met[name] then
      met[name] = true
      found[#found + 1] = name
    end
  end
  return found
end

-- Lease the next jobs of several queues to a worker. The work for one queue is bounded, so the number of events is too.
function pop.pop_any(now, op)
  local again = workers.granted(op.worker, op.request)
  if #again > 0 then
    return jobs.views(now, again)
  end

  workers.seen(now, op.worker)
  local names = distinct(op.queues)
  queues.prefetch(names)
  local jids, shown = {}, {}
  for _, name in ipairs(names) do
    if #jids < op.count and not budget.is_cut() then
      lease(now, name, op.worker, op.count - #jids, op.request, jids, shown)
    end
  end
  if #jids > 0 then
    workers.remember(op.worker, op.request, jids)
  elseif op.wait then
    for _, name in ipairs(names) do
      await_work(name)
    end
  end
  local changed = propagation.propagate(now) or #names > 1 -- a later queue may have changed jobs of an earlier one
  return changed and jobs.views(now, jids) or shown
end

-- A comparison of some jobs, of which so many are ready, by the order of their queue. Their numbers are read once: a sort
-- compares each job ten times.
local function before(found, ready_)
  local ranks = {}
  for i = 1, #found do
    local job = found[i]
    local turn = options.get(job, 'turn')
    local lifo = not turn and options.get(job, 'lifo') and -1 or 1 -- the newest first
    local first = i <= ready_ and queues.standing(job) or queues.place(job)
    ranks[job] = {tonumber(first), lifo, lifo * (turn or job.ready_at), lifo * job.seq}
  end
  return function(job, other_job)
    local one, other = ranks[job], ranks[other_job]
    for i = 1, 3 do
      if one[i] ~= other[i] then
        return one[i] < other[i]
      end
    end
    return one[4] < other[4]
  end
end

-- Leave out some jobs by id; give the first of the others.
local function without(gone, found, most)
  local left = {}
  for _, job in ipairs(found) do
    if not gone[job.jid] and #left < most then
      left[#left + 1] = job
    end
  end
  return left
end

-- The first of some jobs, at least one, as far as reading them takes no more than some units.
local function within(found, units)
  local first = {}
  for i = 1, #found do
    units = units - budget.moving(found[i])
    if i > 1 and units < 0 then
      break
    end
    first[i] = found[i]
  end
  return first
end

-- Drafts of the jobs that would join a fair queue, with their turns: those that are due become ready last.
local function in_turn(queue, coming)
  local drafted, due = {}, {}
  for _, job in ipairs(coming) do
    local list = job.state == 'scheduled' and due or drafted
    list[#list + 1] = jobs.with_priority(job, job.priority)
  end
  for _, job in ipairs(due) do
    drafted[#drafted + 1] = job
  end
  turns.pretend(queue, drafted)
  return drafted
end

-- The jobs that would be ready, in order, after some jobs ended, as far as the budget goes: with due jobs and runs,
-- without expired jobs.
local function order(now, queue, count, ended, gone, gone_count)
  local most, room = catalogue.most, budget.room()
  local over = within(ttl.due(queue, now, most), math.floor(room / 4))
  gone_count = gone_count + #over
  for _, job in ipairs(over) do
    gone[job.jid] = true
    ended[#ended + 1] = job
  end
  local due = within(queues.look_due(queue, now, most + gone_count), math.floor(room / 4))
  local found = without(gone, within(queues.next_ready(queue, count + gone_count), room), count)
  local ready_ = #found -- these are in order
  local coming = concurrency.preview(now, queue, ended, without(gone, due, most))
  for _, job in ipairs(runs.drafts(now, queue, most)) do
    job.seq = job.seq + 2 * most -- jobs that get a slot come before
    coming[#coming + 1] = job
  end
  if config.is_fair(queue) then
    coming = in_turn(queue, coming)
  end
  for _, job in ipairs(coming) do
    found[#found + 1] = job
  end
  if #found > ready_ then
    table.sort(found, before(found, ready_))
  end
  return found
end

-- Whether one of some jobs would fail, or wait.
local function any_fails(now, found)
  for i = 1, #found do
    if fails(found[i]) or waits(now, found[i]) then
      return true
    end
  end
  return false
end

-- The jobs with an ended lease that a pop would give, and those that would fail or yield their slot before, within half the
-- budget.
local function look_ended(now, queue, count, doomed, fewer)
  local moment = now - config.value('grace-period')
  local found = queues.lapsed(queue, moment, count)
  if fewer > 0 or any_fails(now, found) then
    found = queues.lapsed(queue, moment, catalogue.most)
  end
  local shown, ended = {}, {}
  for _, job in ipairs(within(found, math.floor(budget.room() / 2))) do
    local wanted = #shown < count and not doomed[job.jid]
    if wanted and (fails(job) or waits(now, job) and concurrency.yields(job)) then
      ended[#ended + 1] = job
    elseif wanted and not waits(now, job) then
      shown[#shown + 1] = job
    end
  end
  return shown, ended
end

-- Show the jobs that a pop would give next, as far as the budget goes. Parked jobs are left out, and throttles are not
-- checked.
function pop.peek(now, op)
  local doomed, fewer = request_cancellation.doomed(now, op.queue)
  local shown, ended = look_ended(now, op.queue, op.count, doomed, fewer)
  local found = order(now, op.queue, op.count, ended, doomed, fewer)
  for i = 1, math.min(#found, op.count - #shown) do
    local job = found[i]
    if not job.text then -- a draft of a run has no sequence
      job.seq = 0
    end
    if not ttl.is_over(now, job) and not request_cancellation.is_doomed(now, job) then
      shown[#shown + 1] = job
    end
  end
  local views = {}
  for i = 1, budget.afford(shown, budget.weight) do
    views[i] = jobs.view(now, shown[i])
  end
  return views
end

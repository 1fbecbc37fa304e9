-- Recurring jobs: their properties, and when their runs are due. Their rules are described in
-- qmodel/model/state/schedules.py; rules/runs.lua makes the runs.

local recur = {}

-- Refuse arguments that do not belong to the kind.
local function check_kind(op)
  local by_list = op.kind == 'cron'
  if by_list ~= (op.cron ~= '') then
    refusals.refuse('BAD_ARGUMENT', 'recur', 'cron')
  elseif by_list ~= (op.interval_ms == 0) then
    refusals.refuse('BAD_ARGUMENT', 'recur', 'interval_ms')
  elseif by_list and op.offset_ms > 0 then
    refusals.refuse('BAD_ARGUMENT', 'recur', 'offset_ms')
  elseif not by_list and #op.due_at > 0 then
    refusals.refuse('BAD_ARGUMENT', 'recur', 'due_at')
  elseif op.end_at > 0 and op.end_at < op.start_at then
    refusals.refuse('BAD_ARGUMENT', 'recur', 'end_at')
  end
end

-- Refuse due times that are too many, or not in ascending order.
local function check_times(operation, times)
  local last = -1
  for _, moment in ipairs(times) do
    if moment <= last or #times > schedules.times_most then
      refusals.refuse('BAD_ARGUMENT', operation, 'due_at')
    end
    last = moment
  end
end

-- Apply the properties that the operation gives.
local function assign(schedule, op)
  schedule.queue = op.queue
  schedule.klass = op.klass
  schedule.data = op.data
  schedule.priority = op.priority
  schedule.retries = op.retries
  schedules.set_tags(schedule, op.tags)
  schedule.kind = op.kind
  schedule.interval_ms = op.interval_ms
  schedule.offset_ms = op.offset_ms
  schedule.cron = op.cron
  schedule.start_at = op.start_at
  schedule.end_at = op.end_at
  schedule.limit = op.limit
  schedule.backlog = op.backlog
  schedule.missed = op.missed
  schedule.catchup_ms = op.catchup_ms
  schedules.set_throttles(schedule, op.throttles)
  schedule.fair_key = op.fair_key or ''
  schedule.fair_weight = op.fair_weight or 0
  schedule.overlap = op.kind == 'after' and 'skip' or op.overlap
end

-- Create a recurring job, or replace its properties.
function recur.recur(now, op)
  check_kind(op)
  check_times('recur', op.due_at)
  admission.check_names(op.throttles, 'recur')
  local before = schedules.get(op.jid)
  local schedule = schedules.draft(before, op.jid)
  assign(schedule, op)
  if not before or op.restart or not schedules.keeps_time(before, op) then
    schedules.begin(now, schedule, op.due_at)
  end
  if schedules.over(schedule) then
    refusals.refuse('SCHEDULE_OVER', op.jid)
  end

  if before then
    schedules.leave(before)
  end
  schedule.seq = store.emit(now, 'recurred', op.jid, op.queue, op.klass, schedules.next_due(schedule))
  if not before then
    schedule.since = schedule.seq
    schedule.runs = op.runs
  end
  queues.register(now, op.queue)
  schedules.enter(schedule)
  return op.jid
end

-- Delete a recurring job.
function recur.unrecur(now, op)
  local schedule = schedules.get(op.jid)
  if not schedule then
    return 0
  end
  schedules.leave(schedule)
  recurrence.stop(now, schedule, 'unrecur')
  return 1
end

-- Show a recurring job.
function recur.recur_get(_, op)
  local schedule = schedules.get(op.jid)
  return schedule and schedules.view(schedule)
end

-- Change the interval; the next run follows the last one by it.
local function set_interval(now, schedule, interval_ms)
  if schedule.next_at > now and schedule.next_at < queues.NO_TIME then
    schedule.next_at = math.max(schedule.next_at - schedule.interval_ms + interval_ms, now, schedule.start_at)
  end
  schedule.interval_ms = interval_ms
end

-- Change some properties of a recurring job.
function recur.recur_update(now, op)
  local schedule = schedules.find(op.jid)
  if op.interval_ms and schedule.kind == 'cron' then
    refusals.refuse('BAD_ARGUMENT', 'recur_update', 'interval_ms')
  end
  admission.check_names(op.throttles or {}, 'recur_update')

  schedules.leave(schedule)
  if op.queue then
    schedule.queue = op.queue
    queues.register(now, op.queue)
  end
  if op.interval_ms then
    set_interval(now, schedule, op.interval_ms)
  end
  schedule.klass = op.klass or schedule.klass
  schedule.data = op.data or schedule.data
  schedule.priority = op.priority or schedule.priority
  schedule.retries = op.retries or schedule.retries
  schedule.backlog = op.backlog or schedule.backlog
  if op.throttles then
    schedules.set_throttles(schedule, op.throttles)
  end
  schedule.fair_key = op.fair_key or schedule.fair_key
  schedule.fair_weight = op.fair_weight or schedule.fair_weight
  store.emit(now, 'recur_updated', op.jid, schedule.queue, schedules.next_due(schedule))
  recurrence.keep(now, schedule)
  return op.jid
end

-- Set the tags for future runs; give them.
local function set_tags(now, schedule, wanted)
  local before = #schedule.tags
  schedules.set_tags(schedule, wanted)
  if #schedule.tags ~= before then
    store.emit(now, 'recur_updated', schedule.jid, schedule.queue, schedules.next_due(schedule))
    schedules.save(schedule)
  end
  return schedule.tags
end

-- Add tags for future runs.
function recur.recur_tag(now, op)
  local schedule = schedules.find(op.jid)
  tags.check_room('recurring job ' .. op.jid, schedule.tags, op.tags)

  local wanted = {}
  for _, list in ipairs({schedule.tags, op.tags}) do
    for _, tag in ipairs(list) do
      wanted[#wanted + 1] = tag
    end
  end
  return set_tags(now, schedule, wanted)
end

-- Remove tags for future runs.
function recur.recur_untag(now, op)
  local schedule = schedules.find(op.jid)

  local unwanted, wanted = {}, {}
  for _, tag in ipairs(op.tags) do
    unwanted[tag] = true
  end
  for _, tag in ipairs(schedule.tags) do
    if not unwanted[tag] then
      wanted[#wanted + 1] = tag
    end
  end
  return set_tags(now, schedule, wanted)
end

-- List the recurring jobs of a queue.
function recur.recurring(_, op)
  return {schedules.page(op.queue, op.offset, op.count)}
end

-- ---- pausing

-- Pause a recurring job.
function recur.recur_pause(now, op)
  local schedule = schedules.find(op.jid)
  if schedule.paused then
    return 0
  end

  schedules.leave(schedule)
  schedule.paused = true
  store.emit(now, 'recur_paused', op.jid, schedule.queue)
  schedules.enter(schedule)
  return 1
end

-- Unpause a recurring job.
function recur.recur_unpause(now, op)
  local schedule = schedules.find(op.jid)
  if not schedule.paused then
    return 0
  end

  schedules.leave(schedule)
  schedule.paused = false
  store.emit(now, 'recur_unpaused', op.jid, schedule.queue)
  recurrence.resume(now, schedule, 'missed')
  return 1
end

-- ---- lists of moments

-- Supply more due times of a cron schedule.
function recur.recur_advance(now, op)
  check_times('recur_advance', op.due_at)
  local schedule = schedules.get(op.jid)
  if not schedule then
    return 0
  end
  if schedule.kind ~= 'cron' or schedule.last_at ~= op.after then
    return schedule.last_at
  end
  local told = schedules.draft(schedule, op.jid)
  local learned = schedules.learn(told, op.due_at)
  if #op.due_at == 0 then
    told.last_at = math.max(told.last_at, 1) -- 0 would be no end
    told.end_at = told.last_at
  end
  if told.last_at == schedule.last_at and told.end_at == schedule.end_at then
    return schedule.last_at
  end

  schedules.leave(schedule)
  store.emit(now, 'recur_advanced', op.jid, told.queue, learned, told.last_at)
  recurrence.keep(now, told)
  return schedules.over(told) and 0 or told.last_at
end

-- Show the recurring jobs that run out of due times.
function recur.recurring_unset(now, op)
  local found = schedules.unset(now + op.ahead_ms, op.count)
  for i, schedule in ipairs(found) do
    found[i] = schedules.view(schedule)
  end
  return found
end

-- ---- runs

-- Make the due runs of a queue. First, end due requests, fail jobs past their time to live, and delete ended jobs past
-- their own retention.
function recur.fire(now, op)
  request_cancellation.end_due(now, op.queue)
  failure.retire_due(now, catalogue.most)
  failure.expire_due(now, op.queue, catalogue.most)
  return runs.fire_due(now, op.queue, op.count, op.qless)
end

-- Make one extra run, at once.
function recur.recur_now(now, op)
  local schedule = schedules.find(op.jid)

  schedules.leave(schedule)
  local tries = 1
  local run = runs.next_run(schedule, now)
  while not run.free and tries < catalogue.most do
    store.emit(now, 'renumbered', op.jid, schedule.queue, run.jid)
    run = runs.next_run(schedule, now)
    tries = tries + 1
  end
  if run.free then
    schedules.count_run(schedule)
    runs.make(now, run)
  end
  recurrence.keep(now, schedule)
  return run.free and run.jid or ''
end

-- Recurring jobs, and making their runs. What holds of runs is told in qmodel/state/schedules.py.

local scheduling = {}

-- Let a job recur, or replace all but the number of its last run.
function scheduling.recur(now, op)
  local schedule = schedules.get(op.jid)
  if schedule then
    schedules.leave(schedule)
  else
    schedule = schedules.create(op.jid)
  end
  schedule.queue = op.queue
  schedule.klass = op.klass
  schedule.data = op.data
  schedule.priority = op.priority
  schedule.retries = op.retries
  schedules.set_tags(schedule, op.tags)
  schedule.interval_ms = op.interval_ms
  schedule.backlog = op.backlog
  schedule.next_at = now + op.offset_ms
  schedule.seq = store.emit(now, 'recurred', op.jid, op.queue, op.klass, schedule.next_at)
  queues.register(now, op.queue)
  schedules.enter(schedule)
  return op.jid
end

-- Let a job recur no more.
function scheduling.unrecur(now, op)
  local schedule = schedules.get(op.jid)
  if not schedule then
    return 0
  end
  store.emit(now, 'unrecurred', op.jid, schedule.queue)
  schedules.remove(schedule)
  return 1
end

-- Show a recurring job.
function scheduling.recur_get(_, op)
  local schedule = schedules.get(op.jid)
  return schedule and schedules.view(schedule)
end

-- Change what is given of a recurring job.
function scheduling.recur_update(now, op)
  local schedule = schedules.find(op.jid)

  schedules.leave(schedule)
  if op.queue then
    schedule.queue = op.queue
    queues.register(now, op.queue)
  end
  if op.interval_ms then
    if schedule.next_at > now then
      schedule.next_at = math.max(schedule.next_at - schedule.interval_ms + op.interval_ms, now)
    end
    schedule.interval_ms = op.interval_ms
  end
  schedule.klass = op.klass or schedule.klass
  schedule.data = op.data or schedule.data
  schedule.priority = op.priority or schedule.priority
  schedule.retries = op.retries or schedule.retries
  schedule.backlog = op.backlog or schedule.backlog
  store.emit(now, 'recur_updated', op.jid, schedule.queue, schedule.next_at)
  schedules.enter(schedule)
  return op.jid
end

local function set_tags(now, schedule, wanted)
  local before = #schedule.tags
  schedules.set_tags(schedule, wanted)
  if #schedule.tags ~= before then
    store.emit(now, 'recur_updated', schedule.jid, schedule.queue, schedule.next_at)
    schedules.save(schedule)
  end
  return schedule.tags
end

-- Give the runs to come more tags.
function scheduling.recur_tag(now, op)
  local schedule = schedules.find(op.jid)

  local wanted = {}
  for _, list in ipairs({schedule.tags, op.tags}) do
    for _, tag in ipairs(list) do
      wanted[#wanted + 1] = tag
    end
  end
  return set_tags(now, schedule, wanted)
end

-- Give the runs to come fewer tags.
function scheduling.recur_untag(now, op)
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
function scheduling.recurring(_, op)
  return {schedules.page(op.queue, op.offset, op.count)}
end

-- ---- runs: {schedule, jid, due at, whether the id is free}

-- Let a job be a run; give the state in which it begins.
local function begin(job, run)
  local schedule = run.schedule
  job.klass = schedule.klass
  records.set_data(job, schedule.data)
  job.priority = schedule.priority
  job.retries = schedule.retries
  history.add(run.due_at, job, 'spawned', schedule.jid)
  return putting.enter(run.due_at, job, schedule.queue, 0)
end

-- Put a run, as of the moment at which it was due.
local function make(now, run)
  local schedule = run.schedule
  store.emit(now, 'fired', schedule.jid, schedule.queue, run.jid, run.due_at)
  local job = jobs.create(run.jid)
  local state = begin(job, run)
  store.emit(now, 'put', run.jid, schedule.queue, schedule.klass, state)
  tags.assign(job, schedule.tags)
  jobs.place(job, state)
end

-- The next runs of drafts of schedules that are due, moving these on: one of each in turn.
local function in_turn(now, found, most)
  local runs, turn = {}, found
  while #turn > 0 do
    local again = {}
    for i = 1, math.min(#turn, most - #runs) do
      local schedule = turn[i]
      schedule.runs = schedule.runs + 1
      local jid = schedule.jid .. '-' .. schedule.runs
      local run = {schedule = schedule, jid = jid, due_at = schedule.next_at, free = not jobs.get(jid)}
      runs[#runs + 1] = run
      if run.free then
        schedule.next_at = schedule.next_at + schedule.interval_ms
      end
      if schedule.next_at <= now then
        again[#again + 1] = schedule
      end
    end
    turn = again
  end
  return runs
end

-- Make the runs of a queue that are due, once the jobs have failed that may no longer begin.
function scheduling.fire(now, op)
  burying.expire_due(now, op.queue, catalogue.most)
  return scheduling.fire_due(now, op.queue, op.count)
end

-- Make runs that are due, of each schedule in turn, until none is due or so many were tried; give how many.
function scheduling.fire_due(now, queue, most)
  local found = schedules.due(queue, now, most)
  for _, schedule in ipairs(found) do
    local missed = schedules.pass_over(now, schedule)
    if missed > 0 then
      store.emit(now, 'missed', schedule.jid, queue, missed, schedule.next_at)
    end
  end
  local made = 0
  for _, run in ipairs(in_turn(now, found, most)) do
    if run.free then
      make(now, run)
      made = made + 1
    else
      store.emit(now, 'renumbered', run.schedule.jid, queue, run.jid)
    end
  end
  schedules.advance(found)
  return made
end

-- The jobs that the runs would be that a pop would make now; for a read.
function scheduling.drafts(now, queue, most)
  local found = schedules.due(queue, now, most)
  for _, schedule in ipairs(found) do
    schedules.pass_over(now, schedule)
  end
  local shown = {}
  for _, run in ipairs(in_turn(now, found, most)) do
    if run.free then
      local job = jobs.draft(run.jid, 'waiting', #shown + 1)
      begin(job, run)
      tags.pretend(job, run.schedule.tags)
      shown[#shown + 1] = job
    end
  end
  return shown
end

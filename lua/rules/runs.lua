-- Making the runs of recurring jobs. A run is {schedule, jid, due at, whether the id is free}. The rules are described
-- in qmodel/model/state/schedules.py.

local runs = {}

-- Whether a schedule has a run that is due now.
local function is_due(now, schedule)
  return schedule.next_at <= now and not schedules.is_suspended(schedule) and not schedules.over(schedule)
end

-- The next run of a schedule, with the next number.
function runs.next_run(schedule, due_at)
  schedule.runs = schedule.runs + 1
  local jid = schedule.jid .. '-' .. schedule.runs
  return {schedule = schedule, jid = jid, due_at = due_at, free = not jobs.get(jid)}
end

-- Set up a job as a run; give the state in which it begins.
local function begin(job, run)
  local schedule = run.schedule
  job.klass = schedule.klass
  records.set_data(job, schedule.data)
  job.priority = schedule.priority
  job.retries = schedule.retries
  if schedule.overlap == 'skip' then
    options.set(job, 'schedule', schedule.jid .. ' ' .. schedule.since)
  end
  if schedule.throttles[1] then
    options.set(job, 'throttles', table.concat(schedule.throttles, ' '))
  end
  if schedule.fair_key ~= '' then
    options.set(job, 'fair_key', schedule.fair_key)
  end
  if schedule.fair_weight > 0 then
    options.set(job, 'fair_weight', schedule.fair_weight)
  end
  history.add(run.due_at, job, 'spawned', schedule.jid)
  return stages.enter(run.due_at, job, schedule.queue, run.due_at)
end

-- Put a run, with its due time as its ready time.
function runs.make(now, run)
  local schedule = run.schedule
  store.emit(now, 'fired', schedule.jid, schedule.queue, run.jid, run.due_at)
  local job = jobs.create(run.jid)
  local state = begin(job, run)
  store.emit(now, 'put', run.jid, schedule.queue, schedule.klass, state, tags.fact(job, schedule.tags))
  tags.assign(job, schedule.tags)
  jobs.place(job, state)
end

-- The next runs of due schedules, one of each in turn, as long as the budget leaves `kept`; the schedules, which are
-- drafts, advance.
local function in_turn(now, found, most, kept)
  local made, turn = {}, {}
  for _, schedule in ipairs(found) do
    if is_due(now, schedule) then
      turn[#turn + 1] = schedule
    end
  end
  while #turn > 0 do
    local again = {}
    for i = 1, math.min(#turn, most - #made) do
      local schedule = turn[i]
      if not budget.take(budget.of_run(schedule), kept, made[1]) then
        return made
      end
      local run = runs.next_run(schedule, schedule.next_at)
      made[#made + 1] = run
      if run.free then
        schedules.move_on(schedule)
      end
      if is_due(now, schedule) then
        again[#again + 1] = schedule
      end
    end
    turn = again
  end
  return made
end

-- Store the progress of schedules of one queue; delete those that have no more runs.
local function keep_all(now, found)
  local kept = {}
  for _, schedule in ipairs(found) do
    if not schedules.over(schedule) then
      kept[#kept + 1] = schedule
    end
  end
  schedules.advance(kept)
  for _, schedule in ipairs(found) do
    local cause = schedules.over(schedule)
    if cause then
      schedules.leave(schedule)
      recurrence.stop(now, schedule, cause)
    end
  end
end

-- Make due runs of some schedules; give those that were tried.
local function fire(now, queue, found, most, kept)
  for _, schedule in ipairs(found) do
    local missed = schedules.pass_over(now, schedule)
    if missed > 0 then
      store.emit(now, 'missed', schedule.jid, queue, missed, schedules.next_due(schedule))
    end
  end
  local tried = in_turn(now, found, most, kept)
  for _, run in ipairs(tried) do
    if run.free then
      runs.make(now, run)
    else
      store.emit(now, 'renumbered', run.schedule.jid, queue, run.jid)
    end
  end
  return tried
end

-- Make due runs, one of each schedule in turn, until none is due, `most` were tried or half of the budget is spent; give
-- how many. With `drain`, all runs of a schedule come before those of the next, and schedules of one due time come by
-- id.
function runs.fire_due(now, queue, most, drain)
  local kept = math.floor(budget.room() / 2)
  local found = schedules.due(queue, now, most, kept, drain)
  local made, tried, parts = 0, 0, drain and {} or {found}
  for i = 1, drain and #found or 0 do
    parts[i] = {found[i]}
  end
  for _, some in ipairs(parts) do
    if tried < most then
      for _, run in ipairs(fire(now, queue, some, most - tried, kept)) do
        tried = tried + 1
        made = made + (run.free and 1 or 0)
      end
    end
  end
  keep_all(now, found)
  return made
end

-- The jobs that a pop would make as runs now; for a read.
function runs.drafts(now, queue, most)
  local kept = math.floor(budget.room() / 2)
  local found = schedules.due(queue, now, most, kept)
  for _, schedule in ipairs(found) do
    schedules.pass_over(now, schedule)
  end
  local shown = {}
  for _, run in ipairs(in_turn(now, found, most, kept)) do
    if run.free then
      local job = jobs.draft(run.jid, 'waiting', #shown + 1)
      begin(job, run)
      tags.pretend(job, run.schedule.tags)
      shown[#shown + 1] = job
    end
  end
  return shown
end

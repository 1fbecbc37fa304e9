-- Recurring jobs that resume, or that end.

local recurrence = {}

-- Delete a recurring job that is in no list, and tell the cause.
function recurrence.stop(now, schedule, cause)
  store.emit(now, 'unrecurred', schedule.jid, schedule.queue, cause)
  schedules.delete(schedule)
end

-- List a recurring job again, unless it has no more runs.
function recurrence.keep(now, schedule)
  local cause = schedules.over(schedule)
  if cause then
    recurrence.stop(now, schedule, cause)
  else
    schedules.enter(schedule)
  end
end

-- Skip the runs that were due while a recurring job was suspended, and list it again.
function recurrence.resume(now, schedule, event)
  if not schedules.is_suspended(schedule) then
    local passed = schedules.before(schedule, now + 1)
    schedules.skip(schedule, passed)
    if passed > 0 then
      store.emit(now, event, schedule.jid, schedule.queue, passed, schedules.next_due(schedule))
    end
    schedule.next_at = math.max(schedule.next_at, now) -- the kind `after`; all others are past now already
  end
  recurrence.keep(now, schedule)
end

-- Tell the recurring job of a run that the run has ended.
function recurrence.run_ended(now, job)
  local said = options.get(job, 'schedule')
  if not said then
    return
  end
  options.drop(job, 'schedule')
  local jid, since = string.match(said, '^(%S+) (%d+)$')
  local schedule = schedules.get(jid)
  if not schedule or schedule.since ~= tonumber(since) then
    return
  end
  local was_suspended = schedules.is_suspended(schedule) -- not if it was changed since to allow overlap
  schedules.leave(schedule)
  schedule.open = schedule.open - 1
  if schedule.kind == 'after' and schedule.open == 0 and schedule.next_at == queues.NO_TIME then
    schedule.next_at = now + schedule.interval_ms
  end
  if was_suspended then
    recurrence.resume(now, schedule, 'skipped')
  else
    recurrence.keep(now, schedule)
  end
end

-- Schedules: the recurring jobs, and when the next run of each is due. The rules are described in
-- qmodel/model/state/schedules.py.
--
-- A recurring job is a hash, and a member of a sorted set of its queue, with the due time of its next run as the score.
-- A run changes a few fields of the hash. The first due time is in the queue's state: so a queue without recurring
-- jobs, or without a due run, costs no command.

local schedules = {}

local TEXTS = {'queue', 'klass', 'data', 'kind', 'cron', 'missed', 'overlap', 'fair_key'}
local NUMBERS = {
  'priority', 'retries', 'interval_ms', 'offset_ms', 'backlog', 'catchup_ms', 'start_at', 'end_at', 'limit', 'runs', 'made',
  'open', 'since', 'seq', 'next_at', 'last_at', 'fair_weight',
}

local NEVER = 99999999999999
local BETWEEN = '\255' -- a byte that no text in UTF-8 can hold, between tags

schedules.times_most = 100 -- how many due times of a list are known at once

local function list_of(name)
  return keys.queue(name, '-recur')
end

-- A recurring job, or nil if it does not exist.
function schedules.get(jid)
  local found = writes.fetch('HGETALL', keys.schedule(jid))
  if #found == 0 then
    return nil
  end
  local schedule = {jid = jid}
  for i = 1, #found, 2 do
    schedule[found[i]] = found[i + 1]
  end
  for _, field in ipairs(NUMBERS) do
    schedule[field] = tonumber(schedule[field])
  end
  local list, later, throttles_ = {}, {}, {}
  for tag in string.gmatch(schedule.tags, '[^\255]+') do
    list[#list + 1] = tag
  end
  for moment in string.gmatch(schedule.later, '%d+') do
    later[#later + 1] = tonumber(moment)
  end
  for name in string.gmatch(schedule.throttles or '', '%S+') do -- older records have none
    throttles_[#throttles_ + 1] = name
  end
  schedule.throttles = throttles_
  schedule.fair_key, schedule.fair_weight = schedule.fair_key or '', schedule.fair_weight or 0 -- likewise
  schedule.tags, schedule.later, schedule.paused = list, later, schedule.paused == '1'
  return schedule
end

-- A recurring job, or refuse.
function schedules.find(jid)
  return schedules.get(jid) or refusals.refuse('SCHEDULE_NOT_FOUND', jid)
end

-- A copy of an existing schedule, or a new one, in no queue yet.
function schedules.draft(before, jid)
  if not before then
    return {jid = jid, runs = 0, open = 0, paused = false}
  end
  local copy = {}
  for field, value in pairs(before) do
    copy[field] = value
  end
  return copy
end

local function distinct(list)
  local seen, order = {}, {}
  for _, name in ipairs(list) do
    if not seen[name] then
      seen[name] = true
      order[#order + 1] = name
    end
  end
  return order
end

-- Set the tags of its runs, without repetitions.
function schedules.set_tags(schedule, list)
  schedule.tags = distinct(list)
end

-- Set the throttles of its runs, without repetitions.
function schedules.set_throttles(schedule, names)
  schedule.throttles = distinct(names)
end

-- Whether a schedule has no due run until it is unpaused, or until an open run ends.
function schedules.is_suspended(schedule)
  return schedule.paused or (schedule.overlap == 'skip' and schedule.open > 0)
end

local function member(schedule)
  return keys.member(schedule.seq, schedule.jid)
end

-- Whether it has a list of due times that continues after the last known one.
local function wants_times(schedule)
  local ends = schedule.end_at ~= 0 and schedule.last_at >= schedule.end_at
  return schedule.kind == 'cron' and not ends and not schedules.is_suspended(schedule)
end

-- Store in the queue's state when the first run of its recurring jobs is due.
local function expect(name)
  local first = writes.fetch('ZRANGE', list_of(name), 0, 0, 'WITHSCORES')
  queues.expect_runs(name, first[2] and tonumber(first[2]) or NEVER)
end

-- Put it into its lists.
local function add(schedule)
  local moment = schedules.is_suspended(schedule) and queues.NO_TIME or schedule.next_at
  store.add(list_of(schedule.queue), moment, member(schedule))
  if wants_times(schedule) then
    store.add(keys['recur-crons'], schedule.last_at, member(schedule))
  elseif schedule.kind == 'cron' then
    store.remove(keys['recur-crons'], member(schedule))
  end
end

-- Put it into its queue's list, and wake workers that sleep until a time that may be too late now.
function schedules.enter(schedule)
  schedules.save(schedule)
  add(schedule)
  expect(schedule.queue)
  queues.wake_all(schedule.queue)
end

-- Store changes that do not affect its position.
function schedules.save(schedule)
  local key = keys.schedule(schedule.jid)
  for _, field in ipairs(TEXTS) do
    store.set_field(key, field, schedule[field])
  end
  for _, field in ipairs(NUMBERS) do
    store.set_field(key, field, schedule[field])
  end
  store.set_field(key, 'tags', table.concat(schedule.tags, BETWEEN))
  store.set_field(key, 'throttles', table.concat(schedule.throttles, ' '))
  store.set_field(key, 'later', table.concat(schedule.later, ' '))
  store.set_field(key, 'paused', schedule.paused and '1' or '0')
end

-- Take it out of its lists. Call it before changing any field that orders them.
function schedules.leave(schedule)
  store.remove(list_of(schedule.queue), member(schedule))
  if schedule.kind == 'cron' then
    store.remove(keys['recur-crons'], member(schedule))
  end
  expect(schedule.queue)
end

-- Delete a schedule that is in no list.
function schedules.delete(schedule)
  writes.delete(keys.schedule(schedule.jid)) -- directly: a run that ends in this step reads it
end

-- ---- times

-- Whether its due times stay the same.
function schedules.keeps_time(schedule, op)
  return schedule.kind == op.kind and schedule.interval_ms == op.interval_ms and schedule.offset_ms == op.offset_ms
    and schedule.cron == op.cron and schedule.start_at == op.start_at
end

-- The known due times, as a list.
local function known_times(schedule)
  local known = {}
  if schedule.next_at ~= queues.NO_TIME then
    known[1] = schedule.next_at
    for i = 1, #schedule.later do
      known[i + 1] = schedule.later[i]
    end
  end
  return known
end

-- Set the known due times.
local function set_times(schedule, known, first)
  schedule.next_at, schedule.later = known[first] or queues.NO_TIME, {}
  for i = first + 1, #known do
    schedule.later[i - first] = known[i]
  end
end

-- Set the first due time.
function schedules.begin(now, schedule, times)
  schedule.made, schedule.last_at = 0, 0
  schedule.later = {}
  local first = schedule.start_at + schedule.offset_ms
  if schedule.kind == 'cron' then
    schedule.next_at, schedule.last_at = queues.NO_TIME, -1
    schedules.learn(schedule, times)
    if schedule.last_at < 0 then
      schedule.last_at = math.max(now, schedule.start_at - 1)
    end
  elseif schedule.start_at == 0 then
    schedule.next_at = now + schedule.offset_ms
  elseif schedule.kind == 'after' then
    schedule.next_at = math.max(first, now)
  else
    schedule.next_at = first
    schedules.skip(schedule, schedules.before(schedule, now))
  end
end

-- Add the due times that follow the last known one; give how many. Times outside its bounds are left out, and beyond
-- its end it needs no more.
function schedules.learn(schedule, times)
  local known = known_times(schedule)
  local had = #known
  for _, moment in ipairs(times) do
    if schedule.end_at ~= 0 and moment > schedule.end_at then
      schedule.last_at = math.max(schedule.last_at, schedule.end_at)
    elseif moment > schedule.last_at and moment >= schedule.start_at and #known < schedules.times_most then
      known[#known + 1] = moment
      schedule.last_at = moment
    end
  end
  set_times(schedule, known, 1)
  return #known - had
end

-- How many runs are due before a given time.
function schedules.before(schedule, moment)
  if schedule.next_at >= moment or schedule.kind == 'after' then
    return 0
  end
  if schedule.kind == 'cron' then
    local count = 1
    while schedule.later[count] and schedule.later[count] < moment do
      count = count + 1
    end
    return count
  end
  return math.floor((moment - schedule.next_at + schedule.interval_ms - 1) / schedule.interval_ms)
end

-- Skip this many runs.
function schedules.skip(schedule, count)
  if schedule.kind == 'cron' then
    set_times(schedule, known_times(schedule), count + 1)
  else
    schedule.next_at = schedule.next_at + count * schedule.interval_ms
  end
end

-- Count a run that is made.
function schedules.count_run(schedule)
  schedule.made = schedule.made + 1
  if schedule.overlap == 'skip' then
    schedule.open = schedule.open + 1
  end
end

-- Advance to the next due time after a run. With the kind `after` it is not known until the run ends.
function schedules.move_on(schedule)
  schedules.count_run(schedule)
  if schedule.kind == 'after' then
    schedule.next_at = queues.NO_TIME
  else
    schedules.skip(schedule, 1)
  end
end

-- Why it has no more runs, or empty.
function schedules.over(schedule)
  if schedule.limit > 0 and schedule.made >= schedule.limit then
    return 'limit'
  end
  local known = schedule.next_at < queues.NO_TIME or schedule.last_at >= schedule.end_at
  if schedule.end_at > 0 and schedule.next_at > schedule.end_at and known then
    return 'end'
  end
end

-- Skip the missed runs that are not to be made; give how many.
function schedules.pass_over(now, schedule)
  local missed = 0
  if schedule.missed == 'one' then
    local last = schedule.end_at > 0 and math.min(now, schedule.end_at) or now
    missed = schedules.before(schedule, last + 1) - 1
  elseif schedule.missed == 'none' then
    missed = schedules.before(schedule, now - schedule.catchup_ms)
  end
  if schedule.backlog > 0 then
    missed = math.max(missed, schedules.before(schedule, now) - schedule.backlog)
  end
  missed = math.max(missed, 0)
  schedules.skip(schedule, missed)
  return missed
end

-- When its next run is due, or 0 while that is not known.
function schedules.next_due(schedule)
  local known = schedule.next_at ~= queues.NO_TIME and not schedules.is_suspended(schedule)
  return known and schedule.next_at or 0
end

-- ---- runs

-- The schedules with a due run, longest due first, as drafts that `advance` stores; as many as a budget that leaves
-- `kept` can make a run of. `by_id`: those of one moment in the order of their ids.
function schedules.due(name, now, most, kept, by_id)
  local queue = queues.of(name)
  if queue.recur > now then
    return {}
  end
  store.many = true -- there may be a thousand runs, so buffer the writes
  local found, units, jids = {}, 0, {}
  if by_id then
    for i, place in ipairs(queues.in_time(name, '-recur', '-inf', now, catalogue.most)) do
      jids[i] = place[2]
    end
  else
    for i, place in ipairs(writes.fetch('ZRANGEBYSCORE', list_of(name), '-inf', now, 'LIMIT', 0, most)) do
      jids[i] = keys.jid_of(place)
    end
  end
  for i = 1, math.min(#jids, most) do
    local schedule = schedules.get(jids[i])
    units = units + budget.of_run(schedule)
    if found[1] and not budget.fits(units, kept) then
      break
    end
    found[i] = schedule
  end
  return found
end

-- Store the progress of schedules of one queue.
function schedules.advance(found)
  for _, schedule in ipairs(found) do
    local key = keys.schedule(schedule.jid)
    store.set_field(key, 'runs', schedule.runs)
    store.set_field(key, 'made', schedule.made)
    store.set_field(key, 'open', schedule.open)
    store.set_field(key, 'next_at', schedule.next_at)
    if schedule.kind == 'cron' then
      store.set_field(key, 'later', table.concat(schedule.later, ' '))
    end
    add(schedule)
  end
  if found[1] then
    expect(found[1].queue)
  end
end

-- ---- looking

local function recurs(name)
  local queue = queues.of(name)
  return queue.recur < NEVER
end

-- How many jobs recur in a queue.
function schedules.size(name)
  return recurs(name) and writes.fetch('ZCARD', list_of(name)) or 0
end

-- How many of them have a due run that is not made yet.
function schedules.count_due(name, now)
  return recurs(name) and writes.fetch('ZCOUNT', list_of(name), '-inf', now) or 0
end

-- How many jobs recur in a queue, and a page of their ids, next due first.
function schedules.page(name, offset, count)
  local jids = {}
  for i, place in ipairs(writes.fetch('ZRANGE', list_of(name), offset, offset + count - 1)) do
    jids[i] = keys.jid_of(place)
  end
  return schedules.size(name), jids
end

-- Those whose known due times end by `until`, soonest first.
function schedules.unset(until_, count)
  local found = {}
  for i, place in ipairs(writes.fetch('ZRANGEBYSCORE', keys['recur-crons'], '-inf', until_, 'LIMIT', 0, count)) do
    found[i] = schedules.get(keys.jid_of(place))
  end
  return found
end

-- Everything about a recurring job.
function schedules.view(schedule)
  return {
    schedule.jid, schedule.queue, schedule.klass, schedule.data, schedule.priority, schedule.retries,
    schedule.tags, schedule.interval_ms, schedule.backlog, schedule.runs, schedules.next_due(schedule), schedule.kind,
    schedule.cron, schedule.kind == 'cron' and known_times(schedule) or {}, schedule.last_at, schedule.offset_ms,
    schedule.start_at, schedule.end_at, schedule.limit, schedule.made, schedule.missed, schedule.catchup_ms,
    schedule.overlap, schedule.open, schedule.paused and 1 or 0, schedule.throttles,
    schedule.fair_key, schedule.fair_weight,
  }
end

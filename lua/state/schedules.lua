-- Schedules: the jobs that recur, and when the next run of each is due. What holds of them is told in
-- qmodel/state/schedules.py.
--
-- A recurring job is a hash, of which a run changes two fields, and a member of a sorted set of its queue, whose score is
-- the moment at which its next run is due. The first of these moments stands in the queue's state: so where nothing
-- recurs nothing is asked, and where no run is due neither.

local schedules = {}

local FIELDS = {
  'queue', 'klass', 'data', 'priority', 'retries', 'tags', 'interval_ms', 'backlog', 'runs', 'next_at', 'seq',
}

local NEVER = 99999999999999
local BETWEEN = '\255' -- a byte that no text in UTF-8 can hold, between tags

local function list_of(name)
  return keys.queue(name, '-recur')
end

-- A recurring job that may not exist, or false.
function schedules.get(jid)
  local found = store.hashed('HMGET', keys.schedule(jid), unpack(FIELDS))
  if not found[1] then
    return false
  end
  local list = {}
  for tag in string.gmatch(found[6], '[^\255]+') do
    list[#list + 1] = tag
  end
  return {
    jid = jid, queue = found[1], klass = found[2], data = found[3], priority = tonumber(found[4]),
    retries = tonumber(found[5]), tags = list, interval_ms = tonumber(found[7]), backlog = tonumber(found[8]),
    runs = tonumber(found[9]), next_at = tonumber(found[10]), seq = tonumber(found[11]),
  }
end

-- A recurring job, or refuse.
function schedules.find(jid)
  return schedules.get(jid) or refusals.refuse('SCHEDULE_NOT_FOUND', jid)
end

-- A new one, in no queue yet.
function schedules.create(jid)
  return {jid = jid, runs = 0}
end

-- Let its runs have these tags, each once.
function schedules.set_tags(schedule, list)
  local seen, order = {}, {}
  for _, tag in ipairs(list) do
    if not seen[tag] then
      seen[tag] = true
      order[#order + 1] = tag
    end
  end
  schedule.tags = order
end

local function member(schedule)
  return keys.member(schedule.seq, schedule.jid)
end

-- Tell the queue when the first run of its recurring jobs is due.
local function expect(name)
  local first = store.sorted('ZRANGE', list_of(name), 0, 0, 'WITHSCORES')
  queues.expect_runs(name, first[2] and tonumber(first[2]) or NEVER)
end

-- Put it into its queue's list, and wake those who sleep until a moment that may be too late now.
function schedules.enter(schedule)
  schedules.save(schedule)
  store.add(list_of(schedule.queue), schedule.next_at, member(schedule))
  expect(schedule.queue)
  queues.wake_all(schedule.queue)
end

-- Keep what was changed of it that is not its place.
function schedules.save(schedule)
  local key = keys.schedule(schedule.jid)
  for _, field in ipairs(FIELDS) do
    store.set_field(key, field, field == 'tags' and table.concat(schedule.tags, BETWEEN) or schedule[field])
  end
end

-- Take it out of its queue's list.
function schedules.leave(schedule)
  store.remove(list_of(schedule.queue), member(schedule))
  expect(schedule.queue)
end

-- Delete it.
function schedules.remove(schedule)
  schedules.leave(schedule)
  store.write(keys.schedule(schedule.jid), false)
end

-- ---- runs

-- Those that have a run due, longest due first, as drafts that `advance` stores.
function schedules.due(name, now, most)
  local queue = queues.of(name)
  if queue.recur > now then
    return {}
  end
  store.many = true -- there may be a thousand runs
  local found = {}
  for i, place in ipairs(store.sorted('ZRANGEBYSCORE', list_of(name), '-inf', now, 'LIMIT', 0, most)) do
    found[i] = schedules.get(keys.jid_of(place))
  end
  return found
end

-- Skip the runs that were due longer ago than backlog intervals; give how many.
function schedules.pass_over(now, schedule)
  if schedule.backlog == 0 then
    return 0
  end
  local behind = now - schedule.next_at + schedule.interval_ms - 1
  local missed = math.max(math.floor(behind / schedule.interval_ms) - schedule.backlog, 0)
  schedule.next_at = schedule.next_at + missed * schedule.interval_ms
  return missed
end

-- Keep how far schedules of one queue have come.
function schedules.advance(found)
  for _, schedule in ipairs(found) do
    local key = keys.schedule(schedule.jid)
    store.set_field(key, 'runs', schedule.runs)
    store.set_field(key, 'next_at', schedule.next_at)
    store.add(list_of(schedule.queue), schedule.next_at, member(schedule))
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
  return recurs(name) and store.sorted('ZCARD', list_of(name)) or 0
end

-- How many of them have a run due that is not made yet.
function schedules.count_due(name, now)
  return recurs(name) and store.sorted('ZCOUNT', list_of(name), '-inf', now) or 0
end

-- How many jobs recur in a queue, and a page of their ids, next due first.
function schedules.page(name, offset, count)
  local jids = {}
  for i, place in ipairs(store.sorted('ZRANGE', list_of(name), offset, offset + count - 1)) do
    jids[i] = keys.jid_of(place)
  end
  return schedules.size(name), jids
end

-- Everything about a recurring job.
function schedules.view(schedule)
  return {
    schedule.jid, schedule.queue, schedule.klass, schedule.data, schedule.priority, schedule.retries,
    schedule.tags, schedule.interval_ms, schedule.backlog, schedule.runs, schedule.next_at,
  }
end

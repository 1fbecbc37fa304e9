-- Turns: the fair keys of a queue take turns. The rules are described in qmodel/model/state/turns.py.
--
-- The turns of a queue at a priority are one sorted set: its fair keys, each behind a `k`, by their next turns; and the
-- member `#`, whose score is minus the number of jobs with a turn that are in the order.

local turns = {}

local TURN = 1000 -- what lies between two turns of a key with the weight 1
local LAST = 99999999999999 -- the last turn
local PASSED = 2 -- how many keys that the first job has passed are removed when a key is added
local JOBS = '#'

-- The key that a job takes turns by: its own, or else its first throttle; empty if it has neither.
function turns.fair_key(job)
  return options.get(job, 'fair_key') or string.match(options.get(job, 'throttles') or '', '^[^ ]*')
end

-- What a job with this weight, which may be nil, adds to the next turn of its key.
local function cost_of(weight)
  return math.floor(TURN / (weight or 1))
end

function turns.cost(job)
  return cost_of(options.get(job, 'fair_weight'))
end

-- How many jobs with a turn are in the order, and a key's next turn, if it has one.
local function read(key, member)
  local found = writes.fetch('ZMSCORE', key, JOBS, member)
  return -tonumber(found[1] or 0), found[2] and tonumber(found[2])
end

local function write(key, count, member, to)
  writes.put_off('ZADD', key, {store.text(-count), JOBS, store.text(to), member})
end

-- The turn of a job of this cost that becomes ready at a moment, when this number orders the first one of its priority,
-- and this is its key's next turn.
local function turn_of(ready_at, cost, first, following)
  return math.min(math.max((first or ready_at) + math.floor(cost / 2), following or 0), LAST)
end

-- Take the next turn for a job of a fair key that becomes ready, and give it; `first` is the number that orders the first
-- one of its priority.
function turns.take_next(queue, priority, fair_key, weight, ready_at, first)
  local key, member, cost = keys.turns(queue, priority), 'k' .. fair_key, cost_of(weight)
  local count, following = read(key, member)
  if not following and first then
    for _, passed in ipairs(writes.fetch('ZRANGEBYSCORE', key, 0, first, 'LIMIT', 0, PASSED)) do
      writes.put_off('ZREM', key, passed)
    end
  end
  local turn = turn_of(ready_at, cost, first, following)
  write(key, count + 1, member, math.min(turn + cost, LAST))
  return turn
end

-- Give a job that becomes ready its turn.
function turns.take(job, first)
  local weight = options.get(job, 'fair_weight')
  local turn = turns.take_next(job.queue, job.priority, turns.fair_key(job), weight, job.ready_at, first)
  options.set(job, 'turn', turn)
end

-- Write how many jobs with a turn are in the order; without any, the next turns are forgotten.
local function set_count(key, count)
  if count > 0 then
    writes.put_off('ZADD', key, store.text(-count), JOBS)
  else
    writes.delete(key)
  end
end

-- How many jobs with a turn are in the order of a queue at a priority.
function turns.count(queue, priority)
  return -tonumber(writes.fetch('ZSCORE', keys.turns(queue, priority), JOBS))
end

-- Set it after the record of a plain job was written that has left the order.
function turns.leave_plain(queue, priority, count)
  local key = keys.turns(queue, priority)
  if count > 0 then
    writes.last('ZADD', key, store.text(-count), JOBS)
  else
    writes.last('ZREMRANGEBYSCORE', key, '-inf', '+inf')
  end
end

-- Note that a job with a turn is no longer in the order; without any, the next turns are forgotten.
function turns.leave(job)
  if options.get(job, 'turn') then
    set_count(keys.turns(job.queue, job.priority), turns.count(job.queue, job.priority) - 1)
  end
end

-- Give back the turn of a job that leaves the order without being taken.
function turns.give_back(job)
  if not options.get(job, 'turn') then
    return
  end
  local key, member = keys.turns(job.queue, job.priority), 'k' .. turns.fair_key(job)
  local count, following = read(key, member)
  if count > 1 and following then
    write(key, count - 1, member, math.max(following - turns.cost(job), 0))
  else
    set_count(key, count - 1)
  end
  options.drop(job, 'turn')
end

-- How many turns of a key with the weight 1 come before the turn of a waiting job.
function turns.rounds(job, first)
  return first and math.floor(math.max((options.get(job, 'turn') or 0) - first, 0) / TURN) or 0
end

-- Give jobs, which are drafts for a read, the turns that they would get if they became ready in this order.
function turns.pretend(name, found)
  local firsts, following = {}, {}
  for _, job in ipairs(found) do
    if tonumber(job.ready_at) > 0 then
      local priority, member = tonumber(job.priority), 'k' .. turns.fair_key(job)
      local at = priority .. '\t' .. member
      local _, known = read(keys.turns(name, job.priority), member)
      local clock = firsts[priority] or queues.first(name, job.priority)
      local turn = turn_of(job.ready_at, turns.cost(job), clock, following[at] or known)
      firsts[priority] = clock or turn
      following[at] = math.min(turn + turns.cost(job), LAST)
      options.set(job, 'turn', turn)
    end
  end
end

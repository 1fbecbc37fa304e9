-- Complete jobs, and their retention. The rules are described in qmodel/model/state/completed.py.
--
-- The counters hold two bounds: a sequence and a time before which no job can be past retention. Every completion takes
-- at least one sequence. So while there is room for n more jobs, there cannot be too many before n sequences have
-- passed, and most completions need not check.

local completed = {}

local NEVER = 99999999999999
local NONE = {} -- of jobs
local PART, MOST = 16, 64

-- List a complete job.
function completed.add(job)
  store.add(keys.completed, job.ended_at, keys.member(job.seq, job.jid))
  local due = job.ended_at + config.value('jobs-history')
  if due < store.bounds().sweep_at then
    store.bound('sweep_at', due)
  end
  if job.options ~= '' then
    retention.enter(job)
  end
end

-- Remove a complete job.
function completed.discard(job)
  store.remove(keys.completed, keys.member(job.seq, job.jid))
  if job.options ~= '' then
    retention.leave(job)
  end
end

-- Let the next completion check again: a limit, or the oldest job, has changed.
function completed.recheck()
  store.bound('sweep_seq', 0)
  store.bound('sweep_at', 0)
end

-- The oldest complete jobs with their times: those beyond a count and one more, or many if that one is too old as well.
local function oldest_beyond(surplus, too_old, most)
  local room = math.min(math.max(surplus, 0), most)
  local oldest = writes.fetch('ZRANGE', keys.completed, 0, room, 'WITHSCORES')
  if oldest[1] and room < most and tonumber(oldest[#oldest]) <= too_old then
    return writes.fetch('ZRANGE', keys.completed, 0, most, 'WITHSCORES')
  end
  return oldest
end

-- How many jobs are to be deleted because there are too many; 0 while the count is exceeded by few. And how many more may
-- complete before that. If `more` is given, so many are about to be listed.
function completed.surplus_of(more)
  local count = config.value('jobs-history-count')
  local surplus = writes.fetch('ZCARD', keys.completed) + (more or 0) - count
  local slack = math.min(math.floor(count / PART), MOST)
  return surplus > slack and surplus or 0, slack - surplus
end

-- Read the next records of a list with one command.
local function prefetch(oldest, first)
  local jids = {}
  for at = first, math.min(first + 2 * PART, #oldest) - 1, 2 do
    jids[#jids + 1] = keys.jid_of(oldest[at])
  end
  records.prefetch(jids)
end

-- The oldest complete jobs that are past jobs-history or beyond jobs-history-count.
function completed.expired(now, most)
  local bounds = store.bounds()
  if store.last() < bounds.sweep_seq and now < bounds.sweep_at then
    return NONE
  end
  local age = config.value('jobs-history')
  local surplus, room = completed.surplus_of()
  local oldest = oldest_beyond(surplus, now - age, most)
  local expired, at, kept = {}, 1, math.floor(budget.room() / 2)
  while #expired < most and oldest[at] and (#expired < surplus or tonumber(oldest[at + 1]) <= now - age) do
    if at % (2 * PART) == 1 and oldest[at + 2] then
      prefetch(oldest, at)
    end
    local job = jobs.load(keys.jid_of(oldest[at]))
    if not budget.take(budget.weight(job), kept, expired[1]) then
      break
    end
    expired[#expired + 1] = job
    at = at + 2
  end
  store.bound('sweep_seq', store.last() + math.max(room + #expired, 0))
  store.bound('sweep_at', oldest[at] and tonumber(oldest[at + 1]) + age or NEVER)
  return expired
end

-- Whether no job is past its retention, as far as the bounds tell.
local function is_early(now, age, bounds)
  return now < bounds.sweep_at and now + age >= bounds.sweep_at and (bounds.keeping == 0 or now + 1 < bounds.keeping)
end

-- Completions before this event and this moment, and not before that one, delete nothing, by the present bounds.
completed.last_seq, completed.last, completed.first = 0, 0, 0

-- Know these, after the bounds or the options have changed.
function completed.learn()
  local bounds = store.bounds()
  completed.last_seq, completed.first = bounds.sweep_seq, bounds.sweep_at - config.value('jobs-history')
  completed.last = bounds.keeping > 0 and math.min(bounds.sweep_at, bounds.keeping - 1) or bounds.sweep_at
end

-- Whether a completion that is event `seq` deletes nothing, in a row of plain operations, as far as that is known.
function completed.is_known_early(now, seq)
  return store.calm and seq < completed.last_seq and now < completed.last and now >= completed.first
end

-- How many jobs may complete before a completion has to check.
function completed.room(now)
  local bounds = store.bounds()
  return is_early(now, config.value('jobs-history'), bounds) and bounds.sweep_seq - store.seq - 1 or 0
end

-- The oldest jobs, as members of the list, that are to be deleted because `more` complete now, the last as event `seq`;
-- mostly none. Nil if there are more than `most`, or a job is past its retention. Give also the bounds to be set, if any.
-- (Only two scores are read: a server writes each as a fraction, which costs as much as the rest of the member.)
function completed.beyond(now, more, seq, most)
  local bounds, age = store.bounds(), config.value('jobs-history')
  if not is_early(now, age, bounds) then
    return nil
  elseif seq < bounds.sweep_seq then
    return NONE
  end
  local surplus, room = completed.surplus_of(more)
  if surplus > most then
    return nil
  end
  local oldest = surplus > 0 and writes.fetch('ZRANGE', keys.completed, 0, surplus - 1) or NONE
  local ends = writes.fetch('ZRANGE', keys.completed, math.max(surplus - 1, 0), surplus, 'WITHSCORES')
  local at = surplus > 0 and 4 or 2 -- the score of the first that stays
  local next_ = math.min(tonumber(ends[at] or now), now)
  if #oldest < surplus or surplus > 0 and tonumber(ends[2]) > now or next_ <= now - age then
    return nil
  end
  return oldest, seq + math.max(room + surplus, 0), next_ + age
end

-- How many complete jobs there are, and a page of them, latest first.
function completed.page(offset, count)
  local key = keys.completed
  return writes.fetch('ZCARD', key), failures.latest(key, offset, count)
end

-- Retention of single jobs that have ended, if their put set it. The rules are described in
-- qmodel/model/state/retention.py.
--
-- The counters hold a time before which none of them is due, plus one; 0 if there is none. So without such jobs it
-- costs no command.

local retention = {}

local NONE = {} -- of jobs

local OF_STATE = {complete = 'keep_complete_ms', failed = 'keep_failed_ms'}

-- The time until which an ended job is kept by its own retention, or nil.
local function moment_of(job)
  local said = options.get(job, OF_STATE[job.state])
  if not said or options.get(job, 'kept') then
    return nil
  end
  return said ~= '0' and job.ended_at + said or 0
end

local BEYOND = 2 -- how many jobs a completion lets go for `keep_newest`

-- Add a job to those with an end of their retention, if it has one.
local function list(job)
  local moment = moment_of(job)
  if not moment then
    return
  end
  store.add(keys.keeping, moment, keys.member(job.seq, job.jid))
  local first = store.bounds().keeping
  if first == 0 or moment + 1 < first then
    store.bound('keeping', moment + 1)
  end
end

-- Remove a job from those with an end of their retention. It may have been entered in this very step, so buffered writes
-- are written first.
local function unlist(job)
  if moment_of(job) then
    writes.put_off('ZREM', keys.keeping, keys.member(job.seq, job.jid))
  end
end

-- Whether a job is among the newest of its type: until its retention is 0.
local function counts(job)
  return job.state == 'complete' and options.get(job, 'keep_newest') and options.get(job, 'keep_complete_ms') ~= '0'
end

-- Remove a job from the newest of its type.
local function uncount(job)
  writes.put_off('ZREM', keys.newest(job.klass), keys.member(job.seq, job.jid))
end

-- List a complete job among the newest of its type, if it says how many; end the retention of the others.
local function keep_newest(job)
  if not counts(job) then
    return
  end
  local key = keys.newest(job.klass)
  store.add(key, job.ended_at, keys.member(job.seq, job.jid))
  local beyond = math.min(math.max(writes.fetch('ZCARD', key) - options.get(job, 'keep_newest'), 0), BEYOND)
  for _, member in ipairs(beyond > 0 and writes.fetch('ZRANGE', key, 0, beyond - 1) or NONE) do
    local jid = keys.jid_of(member)
    local old_job = jid == job.jid and job or jobs.load(jid)
    if jid ~= job.jid then
      retention.leave(old_job)
    else
      uncount(old_job)
    end
    options.set(old_job, 'keep_complete_ms', 0)
    if jid ~= job.jid then
      list(old_job)
    end
  end
end

-- List a job that has ended, if it has its own retention.
function retention.enter(job)
  keep_newest(job)
  list(job)
end

-- Remove a job from the lists.
function retention.leave(job)
  unlist(job)
  if counts(job) then
    uncount(job)
  end
end

-- The jobs whose own retention is over, earliest first.
function retention.due(now, most)
  local first = store.bounds().keeping
  if first == 0 or now + 1 < first then
    return NONE
  end
  local oldest = writes.fetch('ZRANGE', keys.keeping, 0, most, 'WITHSCORES')
  local found, at, kept = {}, 1, math.floor(budget.room() / 2)
  while #found < most and oldest[at] and tonumber(oldest[at + 1]) <= now do
    local job = jobs.load(keys.jid_of(oldest[at]))
    if not budget.take(budget.weight(job), kept, oldest[at + 1] ~= '0' and found[1]) then
      break
    end
    found[#found + 1] = job
    at = at + 2
  end
  store.bound('keeping', oldest[at] and oldest[at + 1] + 1 or 0)
  return found
end

-- Results: the outcomes of a job's named dependencies. The rules are described in qmodel/model/state/results.py.
--
-- A job with named dependencies has a hash: id -> `<number><TAB><state><TAB><name><LF><text>`. The number orders the
-- names, and the state is empty for an unfinished dependency.

local results = {}

local VALUE = '^(%d+)\t(%l*)\t([^\n]*)\n(.*)$'

local function key_of(job)
  return job.key .. '-results'
end

-- How many names a job was given.
local function named(job)
  return tonumber(options.get(job, 'results') or 0)
end

-- Refuse a job more than 1000 names.
function results.check_room(jid, more)
  if more > 0 and named(jobs.load(jid)) + more > catalogue.most then
    refusals.refuse('DEPENDENCY_LIMIT', jid)
  end
end

-- Reserve a name for the result of a dependency; it comes last.
function results.expect(job, edge)
  local number = store.text(named(job) + 1)
  options.set(job, 'results', number)
  writes.put_off('HSET', key_of(job), edge.jid, number .. '\t\t' .. edge.name .. '\n')
end

-- Keep the outcome of a dependency.
function results.keep(job, other, state, text)
  local number, _, name = string.match(writes.fetch('HGET', key_of(job), other), VALUE)
  writes.put_off('HSET', key_of(job), other, number .. '\t' .. state .. '\t' .. name .. '\n' .. text)
end

-- Drop the outcome of a dependency, if its edge has a name.
function results.drop(job, other, mark)
  if mark % 2 == 1 then
    writes.put_off('HDEL', key_of(job), other)
  end
end

-- Drop all outcomes of a job.
function results.forget(job)
  if options.get(job, 'results') then
    options.drop(job, 'results')
    writes.delete(key_of(job))
  end
end

local function before(one, other)
  return one.number < other.number
end

-- The outcomes of the named dependencies; for an unfinished one, its state at `now`.
function results.view(now, job)
  local found, jids = {}, {}
  local kept = options.get(job, 'results') and writes.fetch('HGETALL', key_of(job)) or {}
  for i = 1, #kept, 2 do
    local number, state, name, text = string.match(kept[i + 1], VALUE)
    found[#found + 1] = {number = tonumber(number), name, kept[i], state, text}
    jids[#jids + 1] = state == '' and kept[i] or nil
  end
  records.prefetch(jids)
  for _, one in ipairs(found) do
    if one[3] == '' then
      local other_job = jobs.load(one[2])
      one[3] = jobs.seen_at(now, other_job)
      one[4] = one[3] == 'failed' and other_job.message or ''
    end
  end
  table.sort(found, before)
  return found
end

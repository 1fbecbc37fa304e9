-- Results: the outcomes of a job's named dependencies. The rules are described in qmodel/model/state/results.py.
--
-- A job with named dependencies has a hash: id -> `<number><TAB><state><TAB><name><LF><text>`. The number orders the
-- names, and the state is empty for an unfinished dependency. A text longer than INLINE is in the field `<TAB><id>`: then
-- there is `<FF><bytes>` in place of `<LF><text>`, so that a page reads no more than it shows.

local results = {}

local VALUE = '^(%d+)\t(%l*)\t([^\n\f]*)([\n\f])(.*)$'
local INLINE = 1024
local TEXTS = 5333 -- the most units of texts of a job's dependencies (4 MiB), or of copies of its result (16 MiB)

local function key_of(job)
  return job.key .. '-results'
end

local function field_of_text(other)
  return '\t' .. other
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

-- Refuse a job if the texts of its dependencies are longer than one operation may read and keep.
function results.check_texts(jid, given)
  local units = 0
  for _, edge in ipairs(given) do
    local job = jobs.get(edge.jid)
    units = units + (job and budget.of_texts(job) or 0)
  end
  if units > TEXTS then
    refusals.refuse('DEPENDENCY_LIMIT', jid)
  end
end

-- The units for the copies of a result that the dependents keep which have named the job.
function results.copying(job, result)
  local units, copies = budget.of_result(#result) - 1, 0
  if units == 0 or job.waited_for == '0' then
    return 0
  end
  local found = writes.fetch('ZRANGE', job.key .. '-dependents', 0, -1, 'WITHSCORES')
  for i = 2, #found, 2 do
    copies = copies + found[i] % 2
  end
  return copies * units
end

-- Refuse a result if its copies are longer than one operation may write.
function results.check_copies(job, result)
  if results.copying(job, result) > TEXTS then
    refusals.refuse('DEPENDENCY_LIMIT', job.jid)
  end
end

-- The edges with names, first those to unfinished jobs, each with the state and the result of its job.
local function named_edges(unmet, met)
  local found = {}
  for _, edge in ipairs(unmet) do
    if edge.name ~= '' then
      found[#found + 1] = {edge, '', ''}
    end
  end
  for _, edge in ipairs(met) do
    local job = jobs.load(edge.jid)
    found[#found + 1] = {edge, 'complete', job.result}
  end
  return found
end

-- Reserve names for the results of unfinished and complete dependencies; they come last.
function results.expect(job, unmet, met)
  local number, values, gone = named(job), {}, {}
  for _, one in ipairs(named_edges(unmet, met)) do
    local edge, state, text, size = one[1], one[2], one[3], #values
    number = number + 1
    local head = store.text(number) .. '\t' .. state .. '\t' .. edge.name
    values[size + 1], values[size + 2] = edge.jid, head .. (#text > INLINE and '\f' .. store.text(#text) or '\n' .. text)
    if #text > INLINE then
      values[size + 3], values[size + 4] = field_of_text(edge.jid), text
    else
      gone[#gone + 1] = field_of_text(edge.jid)
    end
  end
  if values[1] then
    options.set(job, 'results', number)
    writes.put_off_many('HDEL', key_of(job), gone, #gone)
    writes.put_off_many('HSET', key_of(job), values, #values)
  end
end

-- Keep the outcome of a dependency.
function results.keep(job, other, state, text)
  local number, _, name, mark = string.match(writes.fetch('HGET', key_of(job), other), VALUE)
  local head = number .. '\t' .. state .. '\t' .. name
  if #text > INLINE then
    writes.put_off('HSET', key_of(job), {other, head .. '\f' .. store.text(#text), field_of_text(other), text})
    return
  end
  if mark == '\f' then
    writes.put_off('HDEL', key_of(job), field_of_text(other))
  end
  writes.put_off('HSET', key_of(job), other, head .. '\n' .. text)
end

-- Drop the outcome of a dependency, if its edge has a name.
function results.drop(job, other, mark)
  if mark % 2 == 1 then
    writes.put_off('HDEL', key_of(job), other, field_of_text(other))
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

-- The outcomes that are kept with a job, in the order of naming, without the texts that have their own fields.
local function kept(job)
  local found, jids = {}, {}
  for _, field in ipairs(options.get(job, 'results') and writes.fetch('HKEYS', key_of(job)) or {}) do
    if string.sub(field, 1, 1) ~= '\t' then
      jids[#jids + 1] = field
    end
  end
  local values = jids[1] and writes.fetch('HMGET', key_of(job), unpack(jids)) or {}
  for i, value in ipairs(values) do
    local number, state, name, mark, text = string.match(value, VALUE)
    found[i] = {number = tonumber(number), name, jids[i], state, text}
    found[i].bytes = mark == '\f' and tonumber(text)
  end
  table.sort(found, before)
  return found
end

-- The units for showing an outcome.
local function weight(one)
  if one[3] ~= '' then
    return budget.of_result(one.bytes or #one[4])
  end
  local job = jobs.load(one[2])
  return budget.moving(job) + budget.of_result(#job.message)
end

-- An outcome to show: the state of an unfinished dependency, or a text that has its own field.
local function seen(now, job, one)
  if one[3] == '' then
    local other_job = jobs.load(one[2])
    one[3] = jobs.seen_at(now, other_job)
    one[4] = one[3] == 'failed' and other_job.message or ''
  elseif one.bytes then
    one[4] = writes.fetch('HGET', key_of(job), field_of_text(one[2]))
  end
  return one
end

-- A page of the outcomes of the named dependencies; for an unfinished one, its state at `now`.
function results.view(now, job, op)
  local all, page, jids, units = kept(job), {}, {}, 0
  for i = op.offset + 1, math.min(op.offset + op.count, #all) do
    page[#page + 1] = all[i]
    jids[#jids + 1] = all[i][3] == '' and all[i][2] or nil
  end
  records.prefetch(jids)
  for _, one in ipairs(page) do
    units = units + weight(one)
  end
  budget.check('results', #page, units)
  for _, one in ipairs(page) do
    seen(now, job, one)
  end
  return page
end

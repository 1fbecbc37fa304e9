-- Finding jobs by their properties.

local selection = {}

-- The lists of its queue that may contain a job of each state: a scheduled job that is due counts as waiting.
local PARTS = {
  waiting = {'ready', 'scheduled'}, scheduled = {'scheduled'}, throttled = {'throttled'}, depends = {'depends'},
  running = {'locks'}, stalled = {'locks'},
}

local ALL = {'ready', 'scheduled', 'throttled', 'depends', 'locks', 'completed', 'group'}

-- The operations that cancel what they find: a call ends at most 1000 dependencies, or those of its first job.
local CANCELING = {cancel_many = true, clean = true}

-- The properties that the arguments of an operation ask for; `before` is the latest time of ending.
function selection.filter(op, state, before)
  return {
    queue = op.queue, state = state, klass = op.klass, tag = op.tag, worker = op.worker, group = op.group, before = before,
    klass_like = op.klass_like, jid_like = op.jid_like,
  }
end

-- The kinds of lists to read, the shortest available, and their owner; none if no list fits.
local function kinds(wanted)
  if wanted.worker then
    return {'held'}, wanted.worker
  elseif wanted.group then
    return {'group'}, wanted.group
  elseif wanted.tag then
    return {'tag'}, wanted.tag
  elseif wanted.state == 'complete' then
    return {'completed'}, ''
  elseif wanted.state == 'failed' then
    return {'group'}, ''
  elseif not wanted.queue then
    return {}, ''
  end
  return wanted.state and PARTS[wanted.state] or ALL, wanted.queue
end

-- The lists from the cursor on: kind, and owner; and whether they are as many groups as one call lists.
local function lists(of, name, group, at)
  local found, begun, many = {}, not at, false
  for _, kind in ipairs(of) do
    begun = begun or kind == at.kind
    if begun and kind == 'group' and not group then
      local first = at and at.kind == 'group' and at.name or ''
      local names = failures.names(first, catalogue.most)
      for _, one in ipairs(names) do
        found[#found + 1] = {kind, one}
      end
      many = #names == catalogue.most
    elseif begun then
      found[#found + 1] = {kind, name}
    end
  end
  return found, many
end

-- The position to start from; or refuse.
local function begins(op, operation, of)
  if #of == 0 then
    refusals.refuse('TOO_WIDE', operation)
  end
  local at = cursors.read(op.cursor)
  local known = false
  for _, kind in ipairs(of) do
    known = known or at ~= nil and kind == at.kind
  end
  if op.cursor ~= '' and not known then
    refusals.refuse('BAD_ARGUMENT', operation, 'cursor')
  end
  return at
end

-- Whether a job's data have a text in them, if one is searched.
local function has(walk, job, text)
  if not text then
    return true
  end
  walk.units = walk.units + budget.searching(job)
  return string.find(job.apart == '1' and records.data(job) or job.data, text, 1, true) ~= nil
end

-- Examine a job, and collect it if it matches; say whether the budget has room for it.
local function take(now, operation, op, walk, job, wanted)
  local fits = jobs.fits(now, job, wanted) and has(walk, job, op.text)
  if not fits then
    walk.units = walk.units + budget.moving(job)
  else
    walk.units = walk.units + (operation == 'search' and budget.weight(job) or concurrency.ending(job))
  end
  if fits and CANCELING[operation] then
    walk.edges = walk.edges + job.waits
  end
  if walk.seen > 0 and (walk.units > budget.UNITS or walk.edges > catalogue.most) then
    return false
  end
  walk.seen = walk.seen + 1
  if fits then
    walk.found[#walk.found + 1] = job
  end
  return true
end

-- The units for reading the order of a worker's leases: half as many as for looking at each; or refuse.
local function before(operation, of, name)
  return of[1] == 'held' and math.floor(workers.check_bounded(operation, name) / 2) or 0
end

-- The cursor after the last of as many groups as one call lists, which others may follow; no job of it may be examined.
local function beyond(walk, list)
  local kind, name = list[1], list[2]
  local last = walk.last and walk.last[1] == kind and walk.last[2] == name and walk.last[3] or {-math.huge, -math.huge}
  return cursors.write(kind, name, last)
end

-- The latest time of ending of the jobs of a list that are examined, or nil if any.
local function latest(kind, wanted)
  return (kind == 'completed' or kind == 'group') and wanted.before or nil
end

-- The matching jobs, up to `count`, among at most 1000 after the cursor, as far as the budget goes, and the new cursor;
-- or refuse.
function selection.find(now, operation, op, wanted)
  local of, name = kinds(wanted)
  local at = begins(op, operation, of)

  local walk = {found = {}, edges = 0, seen = 0, units = before(operation, of, name), last = nil}
  local found, many = lists(of, name, wanted.group, at)
  for _, list in ipairs(found) do
    local kind, whose = list[1], list[2]
    local after = at and kind == at.kind and (kind ~= 'group' or whose == at.name) and at.behind or nil
    local page
    repeat
      page = cursors.page(kind, whose, after, catalogue.most - walk.seen, latest(kind, wanted))
      for _, one in ipairs(page) do
        if not take(now, operation, op, walk, jobs.load(one[2]), wanted) then
          return walk.found, cursors.write(unpack(walk.last))
        end
        after, walk.last = one[1], {kind, whose, one[1]}
        if #walk.found == op.count or walk.seen == catalogue.most then
          return walk.found, cursors.write(unpack(walk.last))
        end
      end
    until #page == 0
  end
  return walk.found, many and beyond(walk, found[#found]) or ''
end

-- Apply `act` to jobs; give the ids of those that it says it changed, or for a preview of all. It may delete other jobs
-- of the list.
function selection.acted(preview, found, act)
  local jids = {}
  for _, job in ipairs(found) do
    if preview or jobs.get(job.jid) == job and act(job) then
      jids[#jids + 1] = job.jid
    end
  end
  return jids
end

-- Apply `act` to jobs, or only count them.
function selection.bulk(preview, found, cursor, act)
  local done = #selection.acted(preview, found, act)
  return {done, #found - done, cursor}
end

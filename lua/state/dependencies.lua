-- Dependencies: which job waits for which. An edge stands in two sorted sets and in the counts of both records.

local dependencies = {}

local NONE = {} -- of jobs

local EDGES = 4000 -- the most dependencies that one operation adds, or jobs that it looks at

local function edges_of(jid)
  return keys.job(jid) .. '-dependencies'
end

local function edges_to(jid)
  return keys.job(jid) .. '-dependents'
end

-- The unfinished jobs that a job waits for, by id; the first 1000.
function dependencies.of(job)
  if job.waits == '0' then
    return {}
  end
  return store.sorted('ZRANGE', edges_of(job.jid), 0, catalogue.most - 1)
end

-- The jobs that wait for a job, by id.
function dependencies.dependents(job)
  if job.waited_for == '0' then
    return {}
  end
  return store.sorted('ZRANGE', edges_to(job.jid), 0, -1)
end

-- Refuse to end more than 1000 dependencies at once.
function dependencies.check_bounded(job)
  if tonumber(job.waits) > catalogue.most then
    refusals.refuse('DEPENDENCY_LIMIT', job.jid)
  end
end

-- Those that a job is to depend on which are not complete, each once, in order; unknown ones are refused.
-- A job that is itself about to be written counts as unfinished.
local function unfinished(known, jid, others)
  local found, met = {}, {}
  records.prefetch(others)
  for _, other in ipairs(others) do
    if not met[other] then
      met[other] = true
      local job = jobs.get(other)
      if not job and not known[other] then
        refusals.refuse('DEPENDENCY_NOT_FOUND', jid, other)
      end
      if known[other] or job.state ~= 'complete' then
        found[#found + 1] = other
      end
    end
  end
  return found
end

-- Refuse a job more than 1000 dependents; `more` counts those that this operation adds.
local function check_room(jid, others, more)
  for _, other in ipairs(others) do
    local job = jobs.get(other)
    local waited_for = job and tonumber(job.waited_for) or 0
    if waited_for == 0 or not store.sorted('ZSCORE', edges_to(other), jid) then
      more[other] = (more[other] or 0) + 1
      if waited_for + more[other] > catalogue.most then
        refusals.refuse('DEPENDENCY_LIMIT', other)
      end
    end
  end
end

local function path(came_from, at, jid)
  local back = at ~= jid and {jid, at} or {jid}
  while at ~= jid do
    at = came_from[at]
    back[#back + 1] = at
  end
  local forth = {}
  for i = #back, 1, -1 do
    forth[#forth + 1] = back[i]
  end
  return #forth > 1 and forth or {jid, jid}
end

-- The jobs that a job is to wait for; of too many to look at, one too many.
local function waits_for(wanted, jid)
  if wanted[jid] then
    return wanted[jid]
  end
  local job = jobs.get(jid)
  return job and job.waits ~= '0' and store.sorted('ZRANGE', edges_of(jid), 0, EDGES) or {}
end

-- The jobs of a way from one of them on.
local function from(way, jid)
  local found, at = {}, #way + 1
  repeat
    at = at - 1
    found[way[at]] = true
  until way[at] == jid
  return found
end

-- The jobs of a cycle to which one of those jobs leads, or none. No job is looked at twice, and no more than 1000 for each
-- start, 4000 in all.
local function find_cycle(wanted, starts)
  local most = math.min(catalogue.most * #starts, EDGES)
  local met, size = {}, 0 -- whether a job is on the way, or done with
  for _, start in ipairs(starts) do
    local way, ahead = {}, {{jids = {start}, at = 0}}
    while #ahead > 0 do
      local next_ = ahead[#ahead]
      next_.at = next_.at + 1
      local jid = next_.jids[next_.at]
      if not jid then
        ahead[#ahead] = nil
        if #way > 0 then
          met[table.remove(way)] = false
        end
      elseif met[jid] then
        return from(way, jid)
      elseif met[jid] == nil then
        if size > most then
          refusals.refuse('DEPENDENCY_LIMIT', start)
        end
        size = size + 1
        met[jid] = true
        way[#way + 1] = jid
        ahead[#ahead + 1] = {jids = waits_for(wanted, jid), at = 0}
      end
    end
  end
  return {}
end

-- The way from a job that is on a cycle to itself.
local function way_round(wanted, jid)
  local came_from, stack = {}, {jid}
  while #stack > 0 do
    local at = table.remove(stack)
    for _, other in ipairs(waits_for(wanted, at)) do
      if other == jid then
        return path(came_from, at, jid)
      end
      if not came_from[other] then
        came_from[other] = at
        stack[#stack + 1] = other
      end
    end
  end
end

-- Whether a job has dependents. One that has none is in no cycle, however much it depends on.
local function has_dependents(jid)
  local job = jobs.get(jid)
  return job and tonumber(job.waited_for) > 0
end

-- Refuse jobs that would wait for each other, with the path: one search for all that are about to be written.
local function check_cycles(asked, wanted)
  local depended, starts = {}, {}
  for _, others in pairs(wanted) do
    for _, other in ipairs(others) do
      depended[other] = true
    end
  end
  for _, one in ipairs(asked) do
    if wanted[one.jid] and (depended[one.jid] or has_dependents(one.jid)) then
      starts[#starts + 1] = one.jid
    end
  end
  local cycle = find_cycle(wanted, starts)
  for _, jid in ipairs(starts) do
    if cycle[jid] then
      refusals.refuse('DEPENDENCY_CYCLE', table.concat(way_round(wanted, jid), ' > '))
    end
  end
end

-- For each {jid, dependencies or nil}, those that are unfinished: a table by jid; or refuse what is unknown, too much, or
-- a cycle.
function dependencies.check(asked)
  local known, wanted, more, edges = {}, {}, {}, 0
  for _, one in ipairs(asked) do
    known[one.jid] = true
  end
  for _, one in ipairs(asked) do
    if one.depends then
      wanted[one.jid] = unfinished(known, one.jid, one.depends)
    end
  end
  for _, one in ipairs(asked) do
    if one.depends then
      edges = edges + #wanted[one.jid]
      if edges > EDGES then
        refusals.refuse('DEPENDENCY_LIMIT', one.jid)
      end
      check_room(one.jid, wanted[one.jid], more)
    end
  end
  check_cycles(asked, wanted)
  return wanted
end

local function is_linked(job, other)
  return job.waits ~= '0' and store.sorted('ZSCORE', edges_of(job.jid), other)
end

-- Let a job depend on others.
function dependencies.link(job, others)
  for _, other in ipairs(others) do
    if not is_linked(job, other) then
      local other_job = jobs.load(other)
      store.add(edges_of(job.jid), 0, other)
      store.add(edges_to(other), 0, job.jid)
      job.waits = store.text(job.waits + 1)
      other_job.waited_for = store.text(other_job.waited_for + 1)
    end
  end
end

-- Let a job no longer depend on others.
function dependencies.unlink(job, others)
  for _, other in ipairs(others) do
    if is_linked(job, other) then
      local other_job = jobs.load(other)
      store.remove(edges_of(job.jid), other)
      store.remove(edges_to(other), job.jid)
      job.waits = store.text(job.waits - 1)
      other_job.waited_for = store.text(other_job.waited_for - 1)
    end
  end
end

-- Take a finished job out of what others wait for; give those that wait for nothing more, by id.
function dependencies.resolve(job)
  if job.waited_for == '0' then
    return NONE
  end
  local freed = {}
  local jids = dependencies.dependents(job)
  records.prefetch(jids)
  for _, jid in ipairs(jids) do
    local waiting_job = jobs.load(jid)
    store.remove(edges_of(jid), job.jid)
    waiting_job.waits = store.text(waiting_job.waits - 1)
    if waiting_job.waits == '0' then
      freed[#freed + 1] = waiting_job
    end
  end
  store.write(edges_to(job.jid), false)
  job.waited_for = '0'
  return freed
end

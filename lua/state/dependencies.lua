-- Dependencies: which job waits for which, and for which requests. An edge is in two sorted sets, with its mark as the
-- score in both, and in the counts of the records of jobs. The rules are described in qmodel/model/state/dependencies.py.

local dependencies = {}

local NONE = {} -- of jobs

local EDGES = 4000 -- the most jobs that one operation examines for a cycle
local AFTER_BYTES = 4096 -- how many bytes of its edges a job remembers

local NO_EDGES = {given = NONE, unmet = NONE, met = NONE}

dependencies.no_edges = NO_EDGES

local function edges_of(jid)
  return keys.job(jid) .. '-dependencies'
end

local function edges_to(other)
  local id = arguments.awaited_request(other)
  return id and keys.request_dependents(id) or keys.job(other) .. '-dependents'
end

-- What stands for a request where jobs may stand: a record that is not stored. It has the name that dependencies have, the
-- sequence, and how many jobs wait for it.
function dependencies.record_of(request)
  local job = request.record
  if not job then
    job = {}
    job.jid, job.state = arguments.after_request(request.id), ''
    job.waited_for = store.text(writes.fetch('ZCARD', keys.request_dependents(request.id)))
    request.record = job
  end
  job.seq = request.seq
  return job
end

-- The request that a record stands for, or nil if it is that of a job.
function dependencies.request_of(job)
  local id = arguments.awaited_request(job.jid)
  return id and requests.load(id)
end

-- The job that a dependency is on, or what stands for a request; or false, or nil.
local function get(other)
  local id = arguments.awaited_request(other)
  if not id then
    return jobs.get(other)
  end
  local request = requests.get(id)
  return request and dependencies.record_of(request)
end

-- The jobs among dependencies.
function dependencies.jobs_among(others)
  local jids = {}
  for _, other in ipairs(others) do
    jids[#jids + 1] = not arguments.awaited_request(other) and other or nil
  end
  return jids
end

-- How many jobs wait for a request.
function dependencies.count(request)
  local job = dependencies.record_of(request)
  return tonumber(job.waited_for)
end

-- The unfinished jobs and requests that a job waits for, in order; the first 1000.
function dependencies.of(job)
  if job.waits == '0' then
    return {}
  end
  return writes.fetch('ZRANGE', edges_of(job.jid), 0, catalogue.most - 1)
end

-- The jobs that wait for a job or a request, in order.
function dependencies.dependents(job)
  if job.waited_for == '0' then
    return {}
  end
  return writes.fetch('ZRANGE', edges_to(job.jid), 0, -1)
end

-- The jobs that wait for a job or a request by edges of one policy, in order. They are about to be changed, so all are read at once.
function dependencies.under(job, policy)
  if job.waited_for == '0' then
    return NONE
  end
  local mark = 2 * arguments.policies[policy]
  local jids = writes.fetch('ZRANGEBYSCORE', edges_to(job.jid), mark, mark + 1)
  if policy ~= 'block' then
    records.prefetch(jids)
  end
  return jids
end

-- The first two jobs that wait for a job by edges that say `block`.
function dependencies.blocking(job)
  if job.waited_for == '0' then
    return NONE
  end
  local mark = 2 * arguments.policies.block
  return writes.fetch('ZRANGEBYSCORE', edges_to(job.jid), mark, mark + 1, 'LIMIT', 0, 2)
end

-- Whether one operation may end all dependencies of a job.
function dependencies.is_bounded(job)
  return tonumber(job.waits) <= catalogue.most
end

-- Refuse to end more than 1000 dependencies at once.
function dependencies.check_bounded(job)
  if not dependencies.is_bounded(job) then
    refusals.refuse('DEPENDENCY_LIMIT', job.jid)
  end
end

local function mark_for(policy, name)
  return 2 * arguments.policies[policy] + (name ~= '' and 1 or 0)
end

-- Read edges from texts, each job once as first named, in order; and the ids of their jobs.
local function parse(texts)
  local given, jids, met, count = {}, {}, {}, 0
  for i = 1, #texts do
    local jid, policy, name = texts[i], 'block', ''
    if string.find(jid, ' ', 1, true) then
      jid, policy, name = arguments.edge(jid)
    end
    if not met[jid] then
      met[jid] = true
      count = count + 1
      given[count] = {jid = jid, policy = policy, name = name, mark = mark_for(policy, name)}
      jids[count] = jid
    end
  end
  return given, jids
end

-- The edges of a job, in order, each once as first named; unknown jobs and requests are refused. A job that is itself
-- about to be written counts as unfinished. A request that ended well is no obstacle. An edge with the policy cancel to a job that has already failed becomes one with the
-- policy fail.
local function edges(known, jid, others)
  local given, jids = parse(others)
  local unmet, met = {}, {}
  records.prefetch(dependencies.jobs_among(jids))
  for _, edge in ipairs(given) do
    local job, id = get(edge.jid), arguments.awaited_request(edge.jid)
    if not job and not known[edge.jid] then
      refusals.refuse('DEPENDENCY_NOT_FOUND', jid, edge.jid)
    end
    if id then
      unmet[#unmet + 1] = not requests.has_ended_well(requests.load(id)) and edge or nil
    elseif known[edge.jid] or job.state ~= 'complete' then
      local late = edge.policy == 'cancel' and not known[edge.jid] and job.state == 'failed'
      if late then
        edge = {jid = edge.jid, policy = 'fail', name = edge.name, mark = mark_for('fail', edge.name)}
      end
      unmet[#unmet + 1] = edge
    elseif edge.name ~= '' then
      met[#met + 1] = edge
    end
  end
  return {given = given, unmet = unmet, met = met}
end

-- Refuse a job or a request more than 1000 dependents; `more` counts those that this operation adds.
local function check_room(jid, others, more)
  for _, other in ipairs(others) do
    local job = get(other)
    local waited_for = job and tonumber(job.waited_for) or 0
    if waited_for == 0 or not writes.fetch('ZSCORE', edges_to(other), jid) then
      more[other] = (more[other] or 0) + 1
      if waited_for + more[other] > catalogue.most then
        refusals.refuse('DEPENDENCY_LIMIT', other)
      end
    end
  end
end

-- Rebuild the path from the steps of the search.
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

-- The sub-requests for which a request will wait, and that will have dependencies.
local function subs_with_dependencies(plan, id)
  local stay = {}
  for _, jid in ipairs(requests.with_dependencies(id, EDGES + catalogue.most + 1)) do
    stay[#stay + 1] = not plan.known[jid] and jid or nil
  end
  for _, one in ipairs(id == plan.request and plan.asked or NONE) do
    stay[#stay + 1] = plan.edges[one.jid] and one.jid or nil
  end
  return stay
end

-- What a job or a request will wait for; if it is too much, more than the bound.
local function waits_for(plan, other)
  if plan.edges[other] then
    return plan.edges[other]
  end
  local id = arguments.awaited_request(other)
  if id then
    return subs_with_dependencies(plan, id)
  end
  local job = jobs.get(other)
  return job and job.waits ~= '0' and writes.fetch('ZRANGE', edges_of(other), 0, EDGES) or {}
end

-- The jobs of a path, starting with a given one.
local function from(way, jid)
  local found, at = {}, #way + 1
  repeat
    at = at - 1
    found[way[at]] = true
  until way[at] == jid
  return found
end

-- The jobs and requests of a cycle reachable from `starts`, or none. None is examined twice, and at most 1000 for each
-- start, 4000 in total.
local function find_cycle(plan, starts)
  local most = math.min(catalogue.most * #starts, EDGES)
  local met, size = {}, 0 -- whether a job is on the current path (true) or finished (false)
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
        ahead[#ahead + 1] = {jids = waits_for(plan, jid), at = 0}
      end
    end
  end
  return {}
end

-- The path from a job on a cycle back to itself.
local function way_round(plan, jid)
  local came_from, stack = {}, {jid}
  while #stack > 0 do
    local at = table.remove(stack)
    for _, other in ipairs(waits_for(plan, at)) do
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

-- Whether a job or a request has dependents. Without dependents it is in no cycle, whatever it depends on.
local function has_dependents(other)
  local job = get(other)
  return job and tonumber(job.waited_for) > 0
end

-- Refuse jobs that would wait for each other, and give the path: one search for all jobs about to be written.
local function check_cycles(plan)
  local depended, starts = {}, {}
  for _, others in pairs(plan.edges) do
    for _, other in ipairs(others) do
      depended[other] = true
    end
  end
  local request = plan.request and arguments.after_request(plan.request)
  local awaited = request and (depended[request] or has_dependents(request))
  for _, one in ipairs(plan.asked) do
    if plan.edges[one.jid] and (awaited or depended[one.jid] or has_dependents(one.jid)) then
      starts[#starts + 1] = one.jid
    end
  end
  local cycle = find_cycle(plan, starts)
  for _, jid in ipairs(starts) do
    if cycle[jid] then
      refusals.refuse('DEPENDENCY_CYCLE', table.concat(way_round(plan, jid), ' > '))
    end
  end
end

local function jids_of(unmet)
  local jids = {}
  for i, edge in ipairs(unmet) do
    jids[i] = edge.jid
  end
  return jids
end

-- For each {jid, dependencies or nil}, find its edges: a table by jid; or refuse unknown jobs and requests, too many edges,
-- or a cycle. The jobs are then sub-requests of `request`, or of none.
function dependencies.check(asked, request)
  local known, found, wanted, more = {}, {}, {}, {}
  for _, one in ipairs(asked) do
    known[one.jid] = true
  end
  for _, one in ipairs(asked) do
    if one.depends then
      found[one.jid] = edges(known, one.jid, one.depends)
    end
  end
  for _, one in ipairs(asked) do
    if one.depends then
      wanted[one.jid] = jids_of(found[one.jid].unmet)
      results.check_texts(one.jid, found[one.jid].given)
      check_room(one.jid, wanted[one.jid], more)
    end
  end
  check_cycles({asked = asked, known = known, edges = wanted, request = request})
  return found
end

-- The edges that a job is given in addition to its own; or refuse, also if there are more names than are kept.
function dependencies.check_more(jid, others)
  local request = options.get(jobs.load(jid), 'request')
  local found = dependencies.check({{jid = jid, depends = others}}, request)[jid]
  local named = 0
  for _, edge in ipairs(found.given) do
    named = named + (edge.name ~= '' and 1 or 0)
  end
  results.check_room(jid, named)
  return found
end

-- The mark of an edge that a job has, or nil.
local function mark_of(job, other)
  local mark = job.waits ~= '0' and writes.fetch('ZSCORE', edges_of(job.jid), other)
  return mark and tonumber(mark)
end

-- Keep the edges to jobs that a job is given if any has a policy or a name, to draw a finished flow.
local function remember(job, edges_given)
  local given, said = {}, false
  for _, edge in ipairs(edges_given) do
    if not arguments.awaited_request(edge.jid) then
      given[#given + 1] = edge
      said = said or edge.mark > 0
    end
  end
  if not said then
    return
  end
  local after = options.get(job, 'after')
  local parts, size = {after}, after and #after or -1
  for _, edge in ipairs(given) do
    local more = edge.jid .. ' ' .. edge.policy .. (edge.name ~= '' and ':' .. edge.name or '')
    if size + 1 + #more <= AFTER_BYTES then
      parts[#parts + 1], size = more, size + 1 + #more
    end
  end
  options.set(job, 'after', table.concat(parts, ' '))
end

local function add(job, edge, other_job, had)
  if had then
    results.drop(job, edge.jid, had)
  else
    job.waits = store.text(job.waits + 1)
    other_job.waited_for = store.text(other_job.waited_for + 1)
  end
  if had ~= edge.mark then
    store.add(edges_of(job.jid), edge.mark, edge.jid)
    store.add(edges_to(edge.jid), edge.mark, job.jid)
  end
end

-- Whether an edge is to a request that has ended.
local function is_to_ended_request(edge)
  local id = arguments.awaited_request(edge.jid)
  return id and requests.has_ended(requests.load(id))
end

-- Whether a new edge has something to follow: a failed job, unless the edge says `block`, or an ended request.
local function has_ended(edge, other_job)
  return is_to_ended_request(edge) or edge.policy ~= 'block' and other_job.state == 'failed'
end

-- The edge; or, if it is to a request that has ended and says `cancel`, one that says `fail`.
local function unless_ended(edge)
  if edge.policy == 'cancel' and is_to_ended_request(edge) then
    return {jid = edge.jid, policy = 'fail', name = '', mark = mark_for('fail', '')}
  end
  return edge
end

-- Add dependencies to a job. An edge that it already has is replaced.
-- A failed dependency with a policy other than block, and an ended request, is processed at the end of the operation.
-- The put of a sub-request may have ended its request just now.
function dependencies.link(job, found)
  remember(job, found.given)
  local marks = {} -- are read before the first of the edges is written
  for i, edge in ipairs(found.unmet) do
    marks[i] = mark_of(job, edge.jid) or false
  end
  for i, edge in ipairs(found.unmet) do
    local other_job = get(edge.jid)
    add(job, unless_ended(edge), other_job, marks[i])
    if has_ended(edge, other_job) then
      cascade.push(other_job)
    end
  end
  results.expect(job, found.unmet, found.met)
  local request = options.get(job, 'request')
  if request and found.unmet[1] then
    requests.note_dependencies(request, job.jid, concurrency_keys.has_yielded(job))
  end
end

-- Let a job depend on an unfinished one by a plain edge.
function dependencies.wait_for(job, other)
  dependencies.link(job, {given = NONE, unmet = {{jid = other, policy = 'block', name = '', mark = 0}}, met = NONE})
end

-- Remove all dependencies of a job, and what it remembers of them.
function dependencies.forget(job)
  dependencies.unlink(job, dependencies.of(job))
  results.forget(job)
  options.drop(job, 'after')
end

local function strike(job, other_job)
  store.remove(edges_of(job.jid), other_job.jid)
  store.remove(edges_to(other_job.jid), job.jid)
  job.waits = store.text(job.waits - 1)
  other_job.waited_for = store.text(other_job.waited_for - 1)
  other_job.shown = false -- this operation may have shown it already
end

-- Remove some dependencies of a job.
function dependencies.unlink(job, others)
  for _, other in ipairs(others) do
    local mark = mark_of(job, other)
    if mark then
      results.drop(job, other, mark)
      strike(job, get(other))
    end
  end
end

-- Count a dependency that will not complete as met.
function dependencies.ignore(job, other_job, state, message)
  local mark = mark_of(job, other_job.jid)
  strike(job, other_job)
  if mark % 2 == 1 then
    results.keep(job, other_job.jid, state, message)
  end
end

-- Remove a finished job from the dependencies of others; give those that have none left, in order.
function dependencies.resolve(job)
  local freed, jids, marks = {}, {}, {}
  local found = writes.fetch('ZRANGE', edges_to(job.jid), 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    jids[#jids + 1] = found[i]
    marks[#marks + 1] = tonumber(found[i + 1])
  end
  records.prefetch(jids)
  for i, jid in ipairs(jids) do
    local waiting_job = jobs.load(jid)
    store.remove(edges_of(jid), job.jid)
    waiting_job.waits = store.text(waiting_job.waits - 1)
    if marks[i] % 2 == 1 then
      results.keep(waiting_job, job.jid, 'complete', job.result)
    end
    if waiting_job.waits == '0' and waiting_job.state == 'depends' then
      freed[#freed + 1] = waiting_job
    end
  end
  store.write(edges_to(job.jid), false)
  job.waited_for = '0'
  return freed
end

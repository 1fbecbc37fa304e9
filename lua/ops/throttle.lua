-- Setting and showing throttles.

local throttle = {}

-- The argument that is missing, or that must not be given without others; or the first limit, if there is none.
local function missing(op)
  if not op.rate ~= not op.rate_ms then
    return op.rate and 'rate_ms' or 'rate'
  end
  if not op.capacity then
    if op.refill or op.refill_ms then
      return 'capacity'
    end
  elseif not op.refill then
    return 'refill'
  elseif not op.refill_ms then
    return 'refill_ms'
  end
  return not (op.concurrency or op.rate or op.capacity) and 'concurrency'
end

-- Set all limits of a throttle.
function throttle.throttle_set(now, op)
  local lacking = missing(op)
  if lacking then
    refusals.refuse('BAD_ARGUMENT', 'throttle_set', lacking)
  end
  families.check_room(op.throttle)

  local changed = throttles.assign(now, op)
  local seq = store.emit(now, 'limited', op.throttle, unpack(throttles.limits(throttles.of(op.throttle))))
  if changed then
    families.keep(op.throttle, seq)
  end
  parked.free(op.throttle)
  parked.free_family(op.throttle)
  return op.throttle
end

-- Let a leased job count in a throttle no longer.
local function release(now, name, job)
  if not job or job.state ~= 'running' and job.state ~= 'stalled' then
    return 0
  end
  for _, counted in ipairs(throttles.counted(job)) do
    if counted == name then
      store.emit(now, 'updated', job.jid)
      parked.release_one(job, name)
      return 1
    end
  end
  return 0
end

-- Remove all limits of a throttle, or let one job count in it no longer.
function throttle.throttle_unset(now, op)
  if op.jid then
    return release(now, op.throttle, jobs.get(op.jid))
  end
  if not throttles.clear(op.throttle) then
    return 0
  end
  store.emit(now, 'unlimited', op.throttle)
  parked.free(op.throttle)
  parked.free_family(op.throttle)
  return 1
end

local function view(now, name)
  local throttle = throttles.of(name)
  local opens = throttles.opens_at(now, name, 1, {0, 0}, false)
  local facts = throttles.limits(throttle)
  table.insert(facts, 1, name)
  facts[#facts + 1] = throttles.running(name)
  facts[#facts + 1] = throttles.used(name, throttle, now)
  facts[#facts + 1] = throttles.tokens(throttle, now)
  facts[#facts + 1] = parked.count_parked(name)
  facts[#facts + 1] = now < opens and opens < throttles.NEVER and opens or 0
  facts[#facts + 1] = throttles.holders(name, budget.HOLDERS)
  facts[#facts + 1] = throttles.family(name)
  return facts
end

-- Show a throttle.
function throttle.throttle_get(now, op)
  return view(now, op.throttle)
end

-- List the throttles that have limits.
function throttle.throttles(now, op)
  local page = {}
  for i, name in ipairs(throttles.listed(op.offset, op.count)) do
    page[i] = view(now, name)
  end
  return page
end

-- List the throttles that are in use, by name: a page of the matching ones.
function throttle.throttles_used(now, op)
  local names, found = throttles_in_use.known(op.match, op.cursor, catalogue.most), {}
  for at, name in ipairs(names) do
    if subjects.like(op.match, name) and throttles_in_use.has(now, name) then
      if not budget.take(throttles_in_use.showing(name), 0, found[1]) then
        return {names[at - 1], found}
      end
      found[#found + 1] = view(now, name)
      if #found == op.count then
        return {at < #names and name or '', found}
      end
    end
  end
  return {#names == catalogue.most and names[#names] or '', found}
end

-- Concurrency keys: which jobs get a slot, and when. Their rules are in qmodel/model/state/concurrency_keys.py.

local concurrency = {}

-- The state of a job that is ready: waiting if it needs no slot, has one or gets one; otherwise throttled.
function concurrency.admit(job)
  local name = concurrency_keys.of(job)
  if not name or concurrency_keys.has_slot(job) then
    return 'waiting'
  end
  if concurrency_keys.free_slots(name) <= 0 then
    return 'throttled'
  end
  concurrency_keys.take_slot(name, job)
  return 'waiting'
end

-- Put a lifted job into the lists of the state in which it begins; tell if it is parked.
function concurrency.place(now, job, state)
  if state == 'throttled' then
    store.emit(now, 'throttled', job.jid, job.queue, concurrency_keys.of(job))
  end
  jobs.place(job, state)
end

-- Release a job's slot, if it has one, and give it to the next parked job.
function concurrency.release_slot(now, job)
  local name = concurrency_keys.of(job)
  if name and concurrency_keys.has_slot(job) then
    local wanted = concurrency_keys.is_wanted(name)
    concurrency_keys.free_slot(name, job)
    if wanted then
      concurrency.fill_slots(now, name, concurrency_keys.free_slots(name))
    end
  end
end

-- Release the slot of a job that has not started: it is not to start now.
function concurrency.release_unused_slot(now, job)
  if not concurrency_keys.has_begun(job) then
    concurrency.yield_slot(now, job)
  end
end

-- Release the slot of a job that is to wait for others or for its time, if it has one.
function concurrency.yield_slot(now, job)
  local id = options.get(job, 'request')
  if id and concurrency_keys.has_slot(job) and tonumber(job.token) > 0 then
    requests.note_yield(id, job)
  end
  concurrency.release_slot(now, job)
end

-- Whether a job gives up a slot while it waits for its time: a sub-request, unless its request keeps places.
function concurrency.yields(job)
  local id = concurrency_keys.has_slot(job) and options.get(job, 'request')
  return id and requests.load(id).keep_places == 0
end

-- Yield the slot of a job that is to wait for its time, unless it keeps it.
function concurrency.wait_for_time(now, job)
  if concurrency.yields(job) then
    concurrency.yield_slot(now, job)
  end
end

-- Give slots to the first parked jobs, up to `most`; each joins the end of its priority.
function concurrency.fill_slots(now, name, most)
  for _, jid in ipairs(concurrency_keys.first_parked(name, most)) do
    local job = jobs.load(jid)
    jobs.lift(job)
    job.ready_at = now
    store.emit(now, 'unthrottled', job.jid, job.queue, name)
    concurrency_keys.take_slot(name, job)
    jobs.place(job, 'waiting')
  end
end

-- The same jobs, those parked at a key before all others: the order in which many are ended, so that no job gets a slot
-- in the step that ends it.
function concurrency.parked_first(found)
  local first, others = {}, {}
  for _, job in ipairs(found) do
    local list = job.state == 'throttled' and concurrency_keys.is_parked(job) and first or others
    list[#list + 1] = job
  end
  for _, job in ipairs(others) do
    first[#first + 1] = job
  end
  return first
end

-- The units for ending a job: for deleting it, for giving its slot to the next parked job, and for what waits at its
-- throttles.
function concurrency.ending(job)
  local name = concurrency_keys.of(job)
  local units = budget.weight(job) + parked.freeing(job)
  if name and concurrency_keys.has_slot(job) then
    for _, jid in ipairs(concurrency_keys.first_parked(name, 1)) do
      units = units + budget.SLOT + budget.moving(jobs.load(jid))
    end
  end
  return units
end

-- The units for moving a job that is parked at a key, and may get a slot before its turn in the same step.
function concurrency.passing(job)
  return job.state == 'throttled' and concurrency_keys.is_parked(job) and budget.moving(job) or 0
end

-- How many of some jobs each key has.
local function count_of(found)
  local counts = {}
  for _, job in ipairs(found) do
    local name = concurrency_keys.of(job) or ''
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

-- The jobs that would get a slot if others gave up theirs, without these themselves. `taken` returns the change in
-- taken slots of each key.
local function slots_filled_by(now, ended, taken)
  local through, order, ahead, gone, ends = {}, {}, {}, {}, count_of(ended)
  for _, job in ipairs(ended) do
    local name = concurrency_keys.of(job)
    gone[job.jid] = true
    if name and (concurrency_keys.has_slot(job) or through[job.jid]) then
      taken[name] = (taken[name] or 0) - 1
      ahead[name] = ahead[name] or concurrency_keys.first_parked(name, 2 * ends[name])
      while ahead[name][1] and concurrency_keys.free_slots(name) > taken[name] do
        local jid = table.remove(ahead[name], 1)
        if not gone[jid] then
          taken[name] = taken[name] + 1
          through[jid] = true
          local one_job = jobs.load(jid)
          local priority = concurrency_keys.priority(name, one_job)
          order[#order + 1] = jobs.as_waiting(now, one_job, priority, #order + 1)
        end
      end
    end
  end
  local left = {}
  for _, job in ipairs(order) do
    if not gone[job.jid] then
      left[#left + 1] = job
    end
  end
  return left
end

-- The jobs that would join the order of a queue if some jobs gave up their slots, and then others became due: as they would
-- be, for a read.
function concurrency.preview(now, queue, ended, due)
  local found, taken = {}, {}
  for _, job in ipairs(slots_filled_by(now, ended, taken)) do
    if job.queue == queue then
      found[#found + 1] = job
    end
  end
  for _, job in ipairs(due) do
    local name = concurrency_keys.of(job)
    if not name or concurrency_keys.has_slot(job) then
      found[#found + 1] = job
    elseif concurrency_keys.free_slots(name) > (taken[name] or 0) then
      taken[name] = (taken[name] or 0) + 1
      found[#found + 1] = jobs.with_priority(job, concurrency_keys.priority(name, job))
    end
  end
  return found
end

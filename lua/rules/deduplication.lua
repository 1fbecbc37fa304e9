-- Deduplication: a put is dropped or changed when another job already holds its key. The rules are described in
-- qmodel/model/rules/deduplication.py.

local deduplication = {}

local NOT_BEGUN = {waiting = true, scheduled = true, depends = true, throttled = true}

-- Whether the job that stands for a key has not started since it was put.
local function not_begun(job)
  return NOT_BEGUN[job.state] and tonumber(job.token) == 0
end

-- End a job's wait for the holder of its key.
function deduplication.resume(now, job, holder)
  options.drop(job, 'holder')
  dependencies.unlink(job, {holder})
  if job.state == 'depends' and job.waits == '0' then
    stages.unblock(now, job)
  end
end

-- The jobs that depend on a job, without the one that only waits for its key.
function deduplication.dependents(job)
  local found = dependencies.dependents(job)
  if not options.get(job, 'unique') then
    return found
  end
  local others = {}
  for _, jid in ipairs(found) do
    if options.get(jobs.load(jid), 'holder') ~= job.jid then
      others[#others + 1] = jid
    end
  end
  return others
end

-- Whether a dependent of a job only waits for its key: one at most does.
function deduplication.waits_for_key(jid, job)
  return options.get(job, 'unique') ~= nil and options.get(jobs.load(jid), 'holder') == job.jid
end

-- Whether any job depends on a job, beside the one that only waits for its key.
function deduplication.has_dependents(job)
  if job.waited_for ~= '1' or not options.get(job, 'unique') then
    return job.waited_for ~= '0'
  end
  return not deduplication.waits_for_key(dependencies.dependents(job)[1], job)
end

-- ---- before a put: what may refuse

-- Refuse arguments that have no meaning without a key, or in its mode.
function deduplication.check(op, operation)
  local mode = op.unique_mode or 'pending'
  if op.unique_mode and not op.unique then
    refusals.refuse('BAD_ARGUMENT', operation, 'unique_mode')
  end
  if op.unique_ms and (not op.unique or mode ~= 'pending' and mode ~= 'window') then
    refusals.refuse('BAD_ARGUMENT', operation, 'unique_ms')
  end
  if mode == 'window' and not op.unique_ms then
    refusals.refuse('BAD_ARGUMENT', operation, 'unique_ms')
  end
  if op.unique_max_ms and mode ~= 'debounce' then
    refusals.refuse('BAD_ARGUMENT', operation, 'unique_max_ms')
  end
end

-- Refuse to put, in one step, a job that has a key and another job with the same key: the result would depend on the
-- order.
local function check_apart(puts, keyed)
  local times = {}
  for _, op in ipairs(keyed) do
    times[op.unique] = (times[op.unique] or 0) + 1
  end
  for _, op in ipairs(puts) do
    local job = jobs.get(op.jid)
    local key = job and options.get(job, 'unique')
    if key and (times[key] or 0) > (op.unique == key and 1 or 0) then
      refusals.refuse('DUPLICATE_KEY', op.jid, key)
    end
  end
end

-- The job that would stand for one that is put with a key.
local function standing(now, op)
  local unique = uniques.get(now, op.unique)
  if not unique then
    return op.jid
  end
  if unique.next ~= '' then
    return unique.next
  end
  if op.unique_mode == 'again' and unique.ends == 0 and not not_begun(jobs.load(unique.jid)) then
    return op.jid
  end
  return unique.jid
end

-- For each job put with a key, find the job that will stand for it: itself, if it is accepted; or refuse.
function deduplication.plan(now, puts, operation)
  local keyed = {}
  for _, op in ipairs(puts) do
    stages.check(op, operation)
    deduplication.check(op, operation)
    if op.unique then
      keyed[#keyed + 1] = op
    end
  end
  local stands = {}
  if not keyed[1] then
    return stands
  end
  check_apart(puts, keyed)
  local taken = {}
  for _, op in ipairs(keyed) do
    stands[op.jid] = taken[op.unique] or standing(now, op)
    if stands[op.jid] == op.jid then
      taken[op.unique] = op.jid
    end
  end
  return stands
end

-- The same dependencies on the jobs that stand for the named ones; a holder that no longer exists is left out.
local function redirected(depends, stands)
  local others = {}
  for _, text in ipairs(depends) do
    local jid = arguments.edge(text) or text
    local other = stands[jid] or jid
    if other == jid or stands[other] or jobs.get(other) then
      others[#others + 1] = other .. string.sub(text, #jid + 1)
    end
  end
  return others
end

-- The job that an accepted one must wait for because it holds the key, or none.
local function holder(now, op)
  local unique = op.unique and uniques.get(now, op.unique)
  return unique and unique.jid ~= op.jid and unique.jid
end

-- The accepted puts, with their dependencies redirected to the jobs that stand for others, and to the holder.
function deduplication.redirect(now, puts, stands)
  local accepted = {}
  for _, op in ipairs(puts) do
    if (stands[op.jid] or op.jid) == op.jid then
      local others = op.depends and redirected(op.depends, stands)
      local held_by = holder(now, op)
      if held_by then
        local job = jobs.get(op.jid)
        others = others or job and dependencies.of(job) or {}
        others[#others + 1] = held_by
      end
      accepted[#accepted + 1] = {jid = op.jid, depends = others or nil}
    end
  end
  return accepted
end

-- ---- the put

-- The reply to a put with a key under this request, or nil.
function deduplication.recall(operation, request)
  if request ~= '' then
    return idempotency.recall(operation .. ' ' .. request)
  end
end

-- Remember the reply to a put with a key.
function deduplication.remember(operation, request, reply)
  if request ~= '' then
    idempotency.remember(operation .. ' ' .. request, reply)
  end
end

-- Let a job that is being put hold its key, or make it the next holder.
function deduplication.claim(now, job, op)
  local unique = uniques.get(now, op.unique)
  if unique and unique.jid ~= job.jid then
    uniques.keep_next(unique, job.jid)
    options.set(job, 'holder', unique.jid)
    dependencies.wait_for(job, unique.jid)
    return
  end
  uniques.sweep(now)
  local ends = op.unique_ms and now + op.unique_ms or 0
  uniques.hold(op.unique, op.unique_mode or 'pending', job, now, ends)
end

-- Restart the delay of the holder.
local function delay(now, op, job, unique)
  jobs.lift(job)
  concurrency.release_unused_slot(now, job)
  local ready_at = stages.due(now, op)
  if op.unique_max_ms then
    ready_at = math.min(ready_at, unique.since + op.unique_max_ms)
  end
  job.ready_at = ready_at
  local state = stages.begins(now, job)
  store.emit(now, 'deduplicated', job.jid, job.queue, unique.key, 'debounce', state)
  concurrency.place(now, job, state)
end

-- Apply the mode of a put whose key another job holds.
function deduplication.deduplicate(now, op, jid)
  local job = jobs.get(jid)
  local mode = op.unique_mode or 'pending'
  if not job then
    store.emit(now, 'deduplicated', jid, '', op.unique, mode, '')
    return
  end
  local unique = uniques.get(now, op.unique)
  local changes = (mode == 'debounce' or mode == 'again') and not_begun(job)
  if changes then
    records.set_data(job, op.data)
  end
  if changes and mode == 'debounce' and job.state ~= 'throttled' then
    delay(now, op, job, unique)
  else
    store.emit(now, 'deduplicated', jid, job.queue, op.unique, mode, job.state)
  end
end

-- ---- the end

-- Release the key of a job that has ended, or starts anew; the job that waits for it continues.
function deduplication.release_key(now, job)
  local key = options.get(job, 'unique')
  local unique = key and uniques.load(key)
  if not unique then
    return
  end
  if unique.next == job.jid then
    options.drop(job, 'holder')
    dependencies.unlink(job, {unique.jid})
    uniques.keep_next(unique, '')
  elseif unique.jid == job.jid and unique.next ~= '' then
    local next_job = jobs.load(unique.next)
    uniques.hold(unique.key, 'again', next_job, now, 0)
    deduplication.resume(now, next_job, job.jid)
  elseif unique.jid == job.jid and unique.mode ~= 'window' then
    uniques.remove(unique)
  end
end

-- Concurrency keys: jobs that run one at a time, or up to a limit at a time. The rules are described in
-- qmodel/model/state/concurrency_keys.py.
--
-- A key is one sorted set. Jobs with a slot come before all others, at -inf. Parked jobs are ordered as in their queue,
-- by the time at which they became ready and by sequence.

local concurrency_keys = {}

local FIRST = '-inf'
local ORDERED = 'ordered:'
local REQUEST = 'request:'
local NONE = {} -- of jobs

-- The name of the key that a job needs a slot of, or nil.
function concurrency_keys.of(job)
  local key = options.get(job, 'ordered')
  if key then
    return ORDERED .. key
  end
  local request = options.get(job, 'request')
  return request and REQUEST .. request
end

-- The request that this key belongs to, or nil.
local function request_of(name)
  return string.sub(name, 1, #REQUEST) == REQUEST and string.sub(name, #REQUEST + 1) or nil
end

-- How many slots a key has.
function concurrency_keys.limit(name)
  local id = request_of(name)
  return id and requests.limit(id) or 1
end

-- Whether a job has a slot.
function concurrency_keys.has_slot(job)
  return options.get(job, 'line') ~= nil
end

-- Whether a job has been handed out since it got its slot.
function concurrency_keys.has_begun(job)
  return tonumber(epochs.claim(job.token)) > tonumber(options.get(job, 'line') or 0)
end

-- Whether a job has begun, and has no slot any more.
function concurrency_keys.has_yielded(job)
  return tonumber(job.token) > 0 and not concurrency_keys.has_slot(job)
end

-- Whether a ready job is parked at its key.
function concurrency_keys.is_parked(job)
  return concurrency_keys.of(job) ~= nil and not concurrency_keys.has_slot(job)
end

-- How many slots of a key are free; negative if the limit was lowered.
function concurrency_keys.free_slots(name)
  return concurrency_keys.limit(name) - writes.fetch('ZCOUNT', keys.concurrency_key(name), FIRST, FIRST)
end

local function read_parked(name, most)
  local found = {}
  for i, member in ipairs(writes.fetch('ZRANGEBYSCORE', keys.concurrency_key(name), 0, '+inf', 'LIMIT', 0, most)) do
    found[i] = keys.jid_of(member)
  end
  return found
end

-- The jobs that have been parked longest. A step asks several times for the first one; the answer is kept.
function concurrency_keys.first_parked(name, most)
  if most ~= 1 then
    return most > 0 and read_parked(name, most) or NONE
  end
  local firsts = store.firsts or {}
  store.firsts = firsts
  firsts[name] = firsts[name] or read_parked(name, 1)
  return firsts[name]
end

-- Whether a parked job would get a slot that becomes free.
function concurrency_keys.is_wanted(name)
  return concurrency_keys.limit(name) > 0 and #concurrency_keys.first_parked(name, 1) > 0
end

-- Forget which job is the first one.
local function forget_first(name)
  if store.firsts then
    store.firsts[name] = nil
  end
end

-- The first jobs that have a slot, by id.
function concurrency_keys.holders(name, most)
  local jids = {}
  for i, member in ipairs(writes.fetch('ZRANGEBYSCORE', keys.concurrency_key(name), FIRST, FIRST, 'LIMIT', 0, most)) do
    jids[i] = keys.jid_of(member)
  end
  return jids
end

-- The priority that a job has once it has a slot.
function concurrency_keys.priority(name, job)
  local id = request_of(name)
  if not id then
    return job.priority
  end
  local request = requests.load(id)
  return request.priority
end

-- Give a job a slot; the option keeps the sequence. A sub-request gets its request's priority.
function concurrency_keys.take_slot(name, job)
  job.priority = concurrency_keys.priority(name, job)
  store.add(keys.concurrency_key(name), FIRST, keys.member(0, job.jid))
  options.set(job, 'line', store.last())
end

-- Take a job's slot away. It may have got it in this very step, so buffered writes are written first.
function concurrency_keys.free_slot(name, job)
  writes.put_off('ZREM', keys.concurrency_key(name), keys.member(0, job.jid))
  options.drop(job, 'line')
end

-- Park a job at a key.
function concurrency_keys.park(name, job)
  forget_first(name)
  store.add(keys.concurrency_key(name), job.ready_at, keys.member(job.seq, job.jid))
end

-- Stop parking a job.
function concurrency_keys.unpark(name, job)
  forget_first(name)
  store.remove(keys.concurrency_key(name), keys.member(job.seq, job.jid))
end

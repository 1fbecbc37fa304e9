-- Workers: when each was last seen, its leases, and the grant of each of its requests. A worker is one hash, so that a
-- pop reads and writes it once.
--
-- A grant is remembered until one of its leases ends in any way: a worker that finishes a job has received the reply,
-- and a worker that lost a lease must not be granted it again. So this memory needs no clock, and does not leak. If a
-- request id is used again while older leases under it last, the end of one of these forgets the newer grant too.
--
-- A worker's last-seen time is updated at most once a second: more would cost every pop a write that no reader needs.
-- Calls by the rules of qless update it each time, because qless lists workers in that order. It is filled up with
-- blanks (state/keys.lua).

local workers = {}

local PRECISION_MS = 1000
local NEVER = 99999999999999 -- when a worker that is not listed was seen: later than any moment
local SWEEP = 10
local LEASE = 106 -- the first byte of the field of a lease, `j`
local NONE = {} -- of jobs
local KEPT = 100 -- the most workers of which anything is kept
local MANY = 1000 -- the fields of a hash that is not read for what it says of a worker's requests


-- Delete silent workers without leases. A few are examined each time, longest silent first. Those with a lease are
-- passed, and the next call continues after them, until all have been examined.
local function sweep(since)
  local before = tonumber(store.read(keys['workers-passed']) or 0)
  local passed = before
  local few = writes.fetch('ZRANGEBYSCORE', keys.workers, '-inf', since, 'LIMIT', passed, SWEEP)
  for _, silent in ipairs(few) do
    if writes.fetch('HLEN', keys.worker(silent)) > 1 then
      passed = passed + 1
    else
      workers.deregister(silent)
    end
  end
  if #few < SWEEP then
    passed = 0
  end
  if passed ~= before then
    store.write(keys['workers-passed'], store.text(passed))
  end
end

-- Record that a worker was seen now; delete some workers that have been silent too long and hold nothing.
-- `exact`: record it even if the worker was seen within the last second.
function workers.seen(now, name, exact)
  local last = store.seen_at
  if store.seen ~= name then
    last = writes.fetch('HGET', keys.worker(name), '')
  end
  last = last and tonumber(last)
  local recent = last and last <= now and now < last + PRECISION_MS
  if recent and not exact then
    return
  end
  if workers.known[name] then
    workers.known[name].seen_at = now
  end
  store.set_field(keys.worker(name), '', string.format('%-65d', now))
  writes.put_off('ZADD', keys.workers, now, name)
  if not recent then
    sweep(now - config.value('max-worker-age'))
  end
end

-- Take a worker off the list; say whether it was listed.
function workers.deregister(name)
  if workers.known[name] then
    workers.known[name].seen_at = NEVER
  end
  writes.put_off('HDEL', keys.worker(name), '')
  local listed = writes.fetch('ZSCORE', keys.workers, name)
  writes.put_off('ZREM', keys.workers, name)
  return not not listed
end

-- The field of the current grant, if it has one job; false otherwise.
local alone

-- Set how many jobs the request asks for whose leases are entered next.
function workers.expect(request, count)
  alone = count == 1 and request ~= '' and 'r' .. request
end

-- Enter a lease; with it what its request is granted, if that is one job: one command writes both.
function workers.hold(job)
  if alone then
    store.set_two_fields(keys.worker(job.worker), 'j' .. job.jid, job.seq, alone, job.jid)
  else
    store.set_field(keys.worker(job.worker), 'j' .. job.jid, job.seq)
  end
end

-- Remove a lease, and forget the grant that it belongs to.
function workers.release(job)
  store.drop_fields(keys.worker(job.worker), 'j' .. job.jid, 'r' .. job.grant)
end

-- The jobs that a request was granted, if all are still held under it.
function workers.granted(name, request)
  local found = writes.fetch('HMGET', keys.worker(name), '', 'r' .. request)
  store.seen, store.seen_at = name, found[1]
  if not found[2] or request == '' then
    return NONE
  end
  local jids = {}
  for jid in string.gmatch(found[2], '%S+') do
    jids[#jids + 1] = jid
  end
  return jids
end

-- ---- what is known of a worker in a row of plain operations (state/store.lua)
--
-- When it was seen is known from its first pop in the row on. From its second one on all of its requests are known that may
-- have been granted anything: a request that is not among them is new. Those of ended jobs may be among them.

workers.known = {} -- name -> its key, when it was seen, known in which row; its requests, known in which row, and room for more
local many = 0 -- how many workers these are

-- Exchange what is kept of one namespace for that of another one (state/keys.lua).
function workers.keep(namespace)
  namespace.workers, namespace.many_workers = workers.known, many
end

function workers.recall(namespace)
  workers.known, many = namespace.workers, namespace.many_workers
end

local function create(name)
  if many == KEPT then
    workers.known, many = {}, 0
  end
  local taker = {key = keys.worker(name), seen_at = NEVER, met = 0, granted = {}, row = 0, room = 0}
  workers.known[name], many = taker, many + 1
  return taker
end

-- Know all requests of a worker that may have been granted anything, unless they are many.
local function know_requests(taker)
  if writes.fetch('HLEN', taker.key) < MANY then
    local fields, granted = writes.fetch('HKEYS', taker.key), {}
    for i = 1, #fields do
      granted[fields[i]] = true
    end
    taker.granted, taker.row, taker.room = granted, store.row, MANY
  end
end

-- Whether a request was granted nothing yet, for a plain operation.
function workers.is_new(name, request)
  local taker, field, reply = workers.known[name] or create(name), 'r' .. request, nil
  if taker.met == store.row then
    reply = writes.fetch('HGET', taker.key, field)
    if taker.row ~= store.row or taker.room <= 0 then
      know_requests(taker)
    end
  else
    local found = writes.fetch('HMGET', taker.key, '', field)
    taker.met, taker.seen_at, reply = store.row, tonumber(found[1] or NEVER), found[2]
  end
  store.seen, store.seen_at = name, taker.seen_at
  return not reply
end

-- Let the step know when a worker was seen, of which this is known.
function workers.know_seen(name)
  store.seen, store.seen_at = name, workers.known[name].seen_at
end

-- Know that a request of a worker is granted something.
function workers.know_request(name, request)
  workers.known[name].granted['r' .. request] = true
end

-- Forget which requests of a worker are granted anything, because several are.
function workers.forget_requests(name)
  if workers.known[name] then
    workers.known[name].row = 0
  end
end

-- How many of these requests come before the first that was granted anything.
function workers.new_requests(name, requests)
  local fields = {''}
  for i = 1, #requests do
    fields[i + 1] = 'r' .. requests[i]
  end
  local found = writes.fetch('HMGET', keys.worker(name), unpack(fields))
  store.seen, store.seen_at = name, found[1]
  for i = 1, #requests do
    if found[i + 1] then
      return i - 1
    end
  end
  return #requests
end

-- Remember which jobs a request was granted.
function workers.remember(name, request, jids)
  if request ~= '' and #jids > 0 and not alone then
    store.set_field(keys.worker(name), 'r' .. request, table.concat(jids, ' '))
  end
end

-- The listed workers, latest seen first, without those silent for max-worker-age that hold nothing: a page of {name,
-- seen at}. Silent workers with leases are few, and come at the end.
function workers.listed(now, offset, count)
  local since = now - config.value('max-worker-age')
  local key = keys.workers
  local lively = writes.fetch('ZCOUNT', key, '(' .. since, '+inf')
  local found = writes.fetch('ZREVRANGE', key, offset, math.min(offset + count, lively) - 1, 'WITHSCORES')
  if offset >= lively then
    found = {}
  end
  local page = {}
  for i = 1, #found, 2 do
    page[#page + 1] = {found[i], found[i + 1]}
  end
  local skip = math.max(offset - lively, 0)
  for _, silent in ipairs(workers.silent_holders(lively)) do
    if #page < count then
      if skip > 0 then
        skip = skip - 1
      else
        page[#page + 1] = silent
      end
    end
  end
  return page
end

-- The silent workers with a lease, latest seen first; only the 1000 latest silent ones are examined.
function workers.silent_holders(lively)
  local found = writes.fetch('ZREVRANGE', keys.workers, lively, lively + catalogue.most - 1, 'WITHSCORES')
  local holders = {}
  for i = 1, #found, 2 do
    if writes.fetch('HLEN', keys.worker(found[i])) > 1 then
      holders[#holders + 1] = {found[i], found[i + 1]}
    end
  end
  return holders
end

-- When any worker was last seen; 0 if none is listed.
function workers.last_seen()
  local found = writes.fetch('ZREVRANGE', keys.workers, 0, 0, 'WITHSCORES')
  return tonumber(found[2] or 0)
end

-- How many entries a worker has: its leases, the grants that are remembered, and when it was seen. Each grant has a
-- lease of its own.
function workers.entries(name)
  return writes.fetch('HLEN', keys.worker(name))
end

-- Refuse to look at more leases of a worker than one operation may; give the units.
function workers.check_bounded(operation, name)
  local count = workers.entries(name)
  local units = budget.of_leases(count)
  budget.check(operation, count, units)
  return units
end

-- The claims of a worker in their order, and the job of each. A step that asks again gets the same lists.
function workers.claims(name)
  if store.claims and store.claims.name == name then
    return store.claims.seqs, store.claims.of
  end
  local all = writes.fetch('HGETALL', keys.worker(name))
  local seqs, of = {}, {}
  for i = 1, #all, 2 do
    if string.byte(all[i]) == LEASE then
      local seq = tonumber(all[i + 1])
      seqs[#seqs + 1], of[seq] = seq, string.sub(all[i], 2)
    end
  end
  table.sort(seqs)
  store.claims = {name = name, seqs = seqs, of = of}
  return seqs, of
end

-- The jobs that a worker holds, oldest claim first.
function workers.held(name)
  local seqs, of = workers.claims(name)
  local jids = {}
  for i = 1, #seqs do
    jids[i] = of[seqs[i]]
  end
  return jids
end

-- The jobs that a worker holds, for a caller that only counts them.
function workers.unordered(name)
  local fields, jids = writes.fetch('HKEYS', keys.worker(name)), {}
  for i = 1, #fields do
    if string.byte(fields[i]) == LEASE then
      jids[#jids + 1] = string.sub(fields[i], 2)
    end
  end
  return jids
end

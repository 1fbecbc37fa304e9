-- Failed jobs: by group, and all of them by the time of failure, for retention (qmodel/model/state/failures.py). A job
-- may fail and be deleted in one step, so buffered writes are written first.

local failures = {}

local NONE = {} -- of jobs

-- How many jobs a group has. A step asks once; then it counts what it adds and removes.
local function size_of(group)
  local sizes = store.sizes or {}
  store.sizes = sizes
  sizes[group] = sizes[group] or writes.fetch('ZCARD', keys.group(group))
  return sizes[group]
end

local function resize(group, by)
  store.sizes[group] = store.sizes[group] + by
end

-- List a failed job.
function failures.add(job)
  if store.sizes and store.sizes[job.group] then
    resize(job.group, 1)
  end
  store.add(keys.group(job.group), job.ended_at, keys.member(job.seq, job.jid))
  store.add(keys.failures, 0, job.group)
  store.add(keys.failed, job.ended_at, keys.member(job.seq, job.jid))
  retention.enter(job)
end

-- Remove a failed job, and its group if it was the last.
function failures.discard(job)
  local member = keys.member(job.seq, job.jid)
  local left = size_of(job.group) - 1
  resize(job.group, -1)
  store.remove(keys.group(job.group), member)
  if left == 0 then
    writes.put_off('ZREM', keys.failures, job.group)
  end
  if not options.get(job, 'kept') then
    store.remove(keys.failed, member)
  end
  retention.leave(job)
  options.drop(job, 'kept')
end

-- Keep a failed job for as long as it is failed.
function failures.keep(job)
  writes.put_off('ZREM', keys.failed, keys.member(job.seq, job.jid))
  retention.leave(job)
  options.set(job, 'kept', 1)
end

-- The failed jobs that are past failed-history or beyond failed-history-count, longest failed first.
function failures.expired(now, most)
  local age, count = config.value('failed-history'), config.value('failed-history-count')
  if age == 0 and count == 0 then
    return NONE
  end
  local found = age > 0 and writes.fetch('ZRANGEBYSCORE', keys.failed, '-inf', now - age, 'LIMIT', 0, most) or {}
  local surplus = count > 0 and writes.fetch('ZCARD', keys.failed) - count or 0
  if surplus > #found then
    found = writes.fetch('ZRANGE', keys.failed, 0, math.min(surplus, most) - 1)
  end
  for i, member in ipairs(found) do
    found[i] = jobs.load(keys.jid_of(member))
  end
  return found
end

-- A page of the groups by name, with their sizes.
function failures.groups(offset, count)
  local page = {}
  for i, name in ipairs(writes.fetch('ZRANGE', keys.failures, offset, offset + count - 1)) do
    page[i] = {name, writes.fetch('ZCARD', keys.group(name))}
  end
  return page
end

-- The first groups by name, starting at `first`.
function failures.names(first, most)
  local low, high = 0, writes.fetch('ZCARD', keys.failures)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if config.before(writes.fetch('ZRANGE', keys.failures, middle, middle)[1], first) then
      low = middle + 1
    else
      high = middle
    end
  end
  return writes.fetch('ZRANGE', keys.failures, low, low + most - 1)
end

-- How many jobs a group has, and a page of them, latest first.
function failures.page(name, offset, count)
  local key = keys.group(name)
  return writes.fetch('ZCARD', key), failures.latest(key, offset, count)
end

-- A page of a sorted set of jobs from its end.
function failures.latest(key, offset, count)
  local jids = {}
  for i, member in ipairs(writes.fetch('ZREVRANGE', key, offset, offset + count - 1)) do
    jids[i] = keys.jid_of(member)
  end
  return jids
end

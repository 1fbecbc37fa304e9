-- Failed jobs by group.

local failures = {}

-- Enter a failed job.
function failures.add(job)
  store.add(keys.group(job.group), job.ended_at, keys.member(job.seq, job.jid))
  store.add(keys.failures, 0, job.group)
end

-- Strike a failed job, and its group when it was the last.
function failures.discard(job)
  store.remove(keys.group(job.group), keys.member(job.seq, job.jid))
  if store.sorted('ZCARD', keys.group(job.group)) == 0 then
    store.remove(keys.failures, job.group)
  end
end

-- The longest failed jobs of a group.
function failures.oldest(name, count)
  local found = {}
  for i, member in ipairs(store.sorted('ZRANGE', keys.group(name), 0, count - 1)) do
    found[i] = jobs.load(keys.jid_of(member))
  end
  return found
end

-- A page of the groups by name, with their sizes.
function failures.groups(offset, count)
  local page = {}
  for i, name in ipairs(store.sorted('ZRANGE', keys.failures, offset, offset + count - 1)) do
    page[i] = {name, store.sorted('ZCARD', keys.group(name))}
  end
  return page
end

-- The first groups by name, from one on.
function failures.names(first, most)
  local low, high = 0, store.sorted('ZCARD', keys.failures)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if config.before(store.sorted('ZRANGE', keys.failures, middle, middle)[1], first) then
      low = middle + 1
    else
      high = middle
    end
  end
  return store.sorted('ZRANGE', keys.failures, low, low + most - 1)
end

-- How many jobs a group has, and a page of them, latest first.
function failures.page(name, offset, count)
  local key = keys.group(name)
  return store.sorted('ZCARD', key), failures.latest(key, offset, count)
end

-- A page of the jobs in a sorted set, from the end.
function failures.latest(key, offset, count)
  local jids = {}
  for i, member in ipairs(store.sorted('ZREVRANGE', key, offset, offset + count - 1)) do
    jids[i] = keys.jid_of(member)
  end
  return jids
end

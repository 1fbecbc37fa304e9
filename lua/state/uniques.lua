-- Deduplication keys: which job holds a key, and how long. The rules are described in qmodel/model/state/uniques.py.
--
-- A key is a field of one hash: mode, job, since, end and the next job, separated by tabs. Keys with an end of
-- their own are also in a sorted set, scored by that end.

local uniques = {}

local SWEEP = 2 -- how many keys past their times are deleted when one is taken

-- A key as stored, even if it is no longer held, or false.
function uniques.load(key)
  local text = writes.fetch('HGET', keys.uniques, key)
  if not text then
    return false
  end
  local mode, jid, since, ends, next_jid = string.match(text, '^(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)$')
  return {
    key = key, mode = mode, jid = jid, since = tonumber(since), ends = tonumber(ends), next = next_jid,
  }
end

local function write(unique)
  store.set_field(keys.uniques, unique.key, unique.mode .. '\t' .. unique.jid .. '\t' .. store.text(unique.since) .. '\t'
    .. store.text(unique.ends) .. '\t' .. unique.next)
end

-- A key, if it is held, or false.
function uniques.get(now, key)
  local unique = uniques.load(key)
  return unique and (unique.ends == 0 or now < unique.ends) and unique
end

-- Whether nothing is known of a key, and none is past its time.
function uniques.is_free(now, key)
  return not writes.fetch('HGET', keys.uniques, key)
    and not writes.fetch('ZRANGEBYSCORE', keys['unique-ends'], '-inf', now, 'LIMIT', 0, 1)[1]
end

-- Make a new job the only holder of a free key until it ends, after its record was written.
function uniques.hold_plain(key, jid, moment)
  writes.last('HSET', keys.uniques, key, 'pending\t' .. jid .. '\t' .. moment .. '\t0\t')
end

-- Make a job the only holder of a key.
function uniques.hold(key, mode, job, since, ends)
  write({
    key = key, mode = mode, jid = job.jid, since = since, ends = ends, next = '',
  })
  if ends > 0 then
    store.add(keys['unique-ends'], ends, key)
  else
    store.remove(keys['unique-ends'], key)
  end
end

-- Set the job that waits until the holder has ended, or none.
function uniques.keep_next(unique, jid)
  unique.next = jid
  write(unique)
end

-- Release a key.
function uniques.remove(unique)
  store.drop_fields(keys.uniques, unique.key)
  if unique.ends > 0 then
    store.remove(keys['unique-ends'], unique.key)
  end
end

-- Delete keys past their times, the earliest first.
function uniques.sweep(now)
  local past = writes.fetch('ZRANGEBYSCORE', keys['unique-ends'], '-inf', now, 'LIMIT', 0, SWEEP)
  for _, key in ipairs(past) do
    store.drop_fields(keys.uniques, key)
    store.remove(keys['unique-ends'], key)
  end
end

-- Everything about a key.
function uniques.view(unique)
  return {unique.key, unique.mode, unique.jid, unique.since, unique.ends, unique.next}
end

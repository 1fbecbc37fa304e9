-- Deduplication keys: showing the holder of a key, and releasing it.

local deduplicate = {}

-- Show the holder of a key.
function deduplicate.unique_get(now, op)
  local unique = uniques.get(now, op.unique)
  return unique and uniques.view(unique)
end

-- Release a key; a job that waits for the holder continues.
function deduplicate.unique_release(now, op)
  local unique = uniques.get(now, op.unique)
  if not unique then
    return 0
  end
  store.emit(now, 'unique_released', unique.key, unique.jid)
  uniques.remove(unique)
  if unique.next ~= '' then
    deduplication.resume(now, jobs.load(unique.next), unique.jid)
  end
  return 1
end

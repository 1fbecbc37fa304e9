-- Metadata of a klass: texts by key, shared by all its jobs.

local annotate = {}

-- Show the metadata of a klass.
function annotate.metadata_get(_, op)
  return metadata.all(op.klass)
end

-- Refuse a new key if the klass has as many as it may.
local function check_room(klass, known)
  if known == nil and metadata.is_full(klass) then
    refusals.refuse('LIMIT_REACHED', 'keys of klass ' .. klass, metadata.MOST)
  end
end

-- Set a text of a klass.
function annotate.metadata_set(now, op)
  local known = metadata.get(op.klass, op.key)
  check_room(op.klass, known)

  if known ~= op.value then
    metadata.assign(op.klass, op.key, op.value)
    store.emit(now, 'noted', op.klass, op.key)
  end
  return known == nil and 1 or 0
end

-- Add to a text that is a whole number.
function annotate.metadata_increment(now, op)
  local known = metadata.get(op.klass, op.key)
  local before = metadata.whole(known or '0')
  if not before or not metadata.whole(store.text(before + op.by)) then
    refusals.refuse('NOT_WHOLE', op.klass, op.key)
  end
  check_room(op.klass, known)

  metadata.assign(op.klass, op.key, store.text(before + op.by))
  store.emit(now, 'noted', op.klass, op.key)
  return before + op.by
end

-- Delete a key of a klass.
function annotate.metadata_unset(now, op)
  if not metadata.get(op.klass, op.key) then
    return 0
  end

  metadata.drop(op.klass, op.key)
  store.emit(now, 'unnoted', op.klass, op.key)
  return 1
end

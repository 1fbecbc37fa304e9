-- What all runs of a klass share: texts by key, opaque but for those that are counted up.

local annotate = {}

-- Show what was noted for a klass.
function annotate.metadata_get(_, op)
  return metadata.all(op.klass)
end

local function check_room(klass, known)
  if known == nil and metadata.is_full(klass) then
    refusals.refuse('LIMIT_REACHED', 'keys of klass ' .. klass, metadata.MOST)
  end
end

-- Note a text for a klass.
function annotate.metadata_set(now, op)
  local known = metadata.get(op.klass, op.key)
  check_room(op.klass, known)

  if known ~= op.value then
    metadata.assign(op.klass, op.key, op.value)
    store.emit(now, 'noted', op.klass, op.key)
  end
  return known == nil and 1 or 0
end

-- Add to a whole number.
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

-- Forget what is noted under a key.
function annotate.metadata_unset(now, op)
  if not metadata.get(op.klass, op.key) then
    return 0
  end

  metadata.drop(op.klass, op.key)
  store.emit(now, 'unnoted', op.klass, op.key)
  return 1
end

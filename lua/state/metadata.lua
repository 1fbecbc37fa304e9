-- Metadata: texts by key, shared by all jobs of a klass. Empty hashes are not kept.

local metadata = {}

metadata.MOST = 1000

-- The keys and texts of a klass, by key.
function metadata.all(klass)
  local found, pairs_ = writes.fetch('HGETALL', keys.metadata(klass)), {}
  for i = 1, #found, 2 do
    pairs_[#pairs_ + 1] = {found[i], found[i + 1]}
  end
  table.sort(pairs_, function(a, b)
    return config.before(a[1], b[1])
  end)
  return pairs_
end

-- The text under a key, or nil.
function metadata.get(klass, key)
  return writes.fetch('HGET', keys.metadata(klass), key) or nil
end

-- Read a text as a whole number of at most 14 digits, or nil.
function metadata.whole(text)
  return arguments.whole(text, -99999999999999, 99999999999999)
end

-- Whether a klass has as many keys as it may.
function metadata.is_full(klass)
  return writes.fetch('HLEN', keys.metadata(klass)) >= metadata.MOST
end

-- Set a text.
function metadata.assign(klass, key, value)
  store.set_field(keys.metadata(klass), key, value)
end

-- Delete an existing text.
function metadata.drop(klass, key)
  writes.put_off('HDEL', keys.metadata(klass), key)
end

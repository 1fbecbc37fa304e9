#!lua name=floor

-- The least that a queue with an inspectable job can do: a hash for each job, one sorted set for each state, nothing
-- else. One function a stage, of one job a call; and the same for a hundred jobs in a call, which takes them off the
-- queue with one command, and otherwise does for each what the single call does. The `_packed` ones write all
-- members of a sorted set at once.

local function put(_, a)
  redis.call('HSET', 'fl:j:' .. a[1], 'klass', a[2], 'data', a[3], 'state', 'waiting', 'queue', 'emails', 'priority', '0', 'put_at', a[4])
  redis.call('ZADD', 'fl:work', a[4], a[1])
  return a[1]
end

local function claim(jid, worker, expires_at)
  redis.call('HSET', 'fl:j:' .. jid, 'state', 'running', 'worker', worker, 'expires_at', expires_at)
  redis.call('ZADD', 'fl:locks', expires_at, jid)
  return {jid, redis.call('HMGET', 'fl:j:' .. jid, 'klass', 'data', 'priority')}
end

local function pop(_, a)
  local next_ = redis.call('ZPOPMIN', 'fl:work')
  return claim(next_[1], a[1], a[2])
end

local function complete(_, a)
  redis.call('ZREM', 'fl:locks', a[1])
  redis.call('HSET', 'fl:j:' .. a[1], 'state', 'complete', 'worker', '', 'expires_at', '0')
  redis.call('ZADD', 'fl:completed', a[2], a[1])
  return a[1]
end

local function put_many(_, a)
  for i = 1, #a, 4 do
    put(nil, {a[i], a[i + 1], a[i + 2], a[i + 3]})
  end
  return #a / 4
end

local function pop_many(_, a)
  local popped, claimed = redis.call('ZPOPMIN', 'fl:work', a[3]), {}
  for i = 1, #popped, 2 do
    claimed[#claimed + 1] = claim(popped[i], a[1], a[2])
  end
  return claimed
end

local function complete_many(_, a)
  for i = 2, #a do
    complete(nil, {a[i], a[1]})
  end
  return #a - 1
end

local function put_many_packed(_, a)
  local added = {}
  for i = 1, #a, 4 do
    redis.call('HSET', 'fl:j:' .. a[i], 'klass', a[i + 1], 'data', a[i + 2], 'state', 'waiting', 'queue', 'emails', 'priority', '0', 'put_at', a[i + 3])
    added[#added + 1] = a[i + 3]
    added[#added + 1] = a[i]
  end
  redis.call('ZADD', 'fl:work', unpack(added))
  return #a / 4
end

local function pop_many_packed(_, a)
  local popped, claimed, added = redis.call('ZPOPMIN', 'fl:work', a[3]), {}, {}
  for i = 1, #popped, 2 do
    redis.call('HSET', 'fl:j:' .. popped[i], 'state', 'running', 'worker', a[1], 'expires_at', a[2])
    claimed[#claimed + 1] = {popped[i], redis.call('HMGET', 'fl:j:' .. popped[i], 'klass', 'data', 'priority')}
    added[#added + 1] = a[2]
    added[#added + 1] = popped[i]
  end
  redis.call('ZADD', 'fl:locks', unpack(added))
  return claimed
end

local function complete_many_packed(_, a)
  local jids, added = {}, {}
  for i = 2, #a do
    redis.call('HSET', 'fl:j:' .. a[i], 'state', 'complete', 'worker', '', 'expires_at', '0')
    jids[#jids + 1] = a[i]
    added[#added + 1] = a[1]
    added[#added + 1] = a[i]
  end
  redis.call('ZREM', 'fl:locks', unpack(jids))
  redis.call('ZADD', 'fl:completed', unpack(added))
  return #jids
end

redis.register_function('floor_put', put)
redis.register_function('floor_pop', pop)
redis.register_function('floor_complete', complete)
redis.register_function('floor_put_many', put_many)
redis.register_function('floor_pop_many', pop_many)
redis.register_function('floor_complete_many', complete_many)
redis.register_function('floor_put_many_packed', put_many_packed)
redis.register_function('floor_pop_many_packed', pop_many_packed)
redis.register_function('floor_complete_many_packed', complete_many_packed)

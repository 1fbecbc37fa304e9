#!lua name=same

-- The commands of qmodel's lifecycle, with keys and texts of the same lengths, and nothing that decides: what MONITOR
-- shows of a put, a pop and a complete, and of a hundred jobs in a call. So it is the least that qmodel can cost with
-- the commands that it makes; what it costs beyond is its own Lua.

local MOMENT = '1795294727303'
local COUNTERS = '3001\t0\t1\t4201\t1795899527303\t0\t0'
local HEAD = '\t3002\t2\t0\temails\t1795294727303\t5\t5\tworker-1\t3002\t1e8a2e84082e44be9d2e3c\t1795294727306\t1795294787306'
  .. '\t0\tSendEmail\t0\t1795294727303\t99398fa7e15c47ab918ea9\t100\n'
local DATA = '{"to": "somebody@example.com", "subject": "Welcome aboard", "text": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'
local PUT, POPPED = 'put\t1795294727303\temails\n', 'popped\t1795294727306\tworker-1\t3002\n'
local COMPLETED = 'completed\t1795294727306\t3002\tcomplete\n'
local WAITING, RUNNING = 'waiting' .. HEAD .. DATA .. PUT, 'running' .. HEAD .. DATA .. PUT .. POPPED
local COMPLETE = 'complete' .. HEAD .. DATA .. PUT .. POPPED .. COMPLETED
local BLANKS = '                   '
local SEEN = MOMENT .. '                                                    '

-- An event, which is the same for all kinds of call.
local function tell(event, jid, facts)
  redis.call('XADD', 'sm:events', '*', 'e', MOMENT .. event .. jid .. facts)
end

-- The events of a batch, which are one entry.
local function tell_all(event, jids, facts)
  local lines = {}
  for i = 1, #jids do
    lines[i] = MOMENT .. event .. jids[i] .. facts
  end
  redis.call('XADD', 'sm:events', '*', 'e', table.concat(lines, '\n'))
end

local function put(_, a)
  local jid, key = a[1], 'sm:j:' .. a[1]
  redis.call('TIME')
  redis.call('MGET', 'sm:counters', 'sm:config', key, 'sm:q:emails-state', 'sm:!')
  tell('\tput\t', jid, '\temails\tSendEmail\twaiting')
  redis.call('ZADD', 'sm:q:emails-work', '0', '01795294727303' .. a[2] .. (string.sub(a[2], -1) == '0' and '     ' or '') .. jid)
  redis.call('MSET', key, WAITING, 'sm:counters', COUNTERS)
  return jid
end

local function pop(_, a)
  redis.call('TIME')
  redis.call('MGET', 'sm:counters', 'sm:config', 'sm:q:emails-state', 'sm:!')
  if not redis.call('HMGET', 'sm:w:worker-1:jobs', '', 'r' .. a[1])[1] then
    redis.call('HSET', 'sm:w:worker-1:jobs', '', SEEN)
  end
  local jid = string.sub(redis.call('ZPOPMIN', 'sm:q:emails-work', '1')[1], -32)
  local key = 'sm:j:' .. jid
  redis.call('GET', key)
  tell('\tpopped\t', jid, '\temails\tworker-1\t3')
  redis.call('RPUSH', 'sm:s:wait-new:1795219200000:emails', '3')
  redis.call('ZADD', 'sm:q:emails-locks', '1795294787306', a[2] .. BLANKS .. jid)
  redis.call('MSET', key, RUNNING, 'sm:counters', COUNTERS)
  redis.call('HSET', 'sm:w:worker-1:jobs', 'r' .. a[1], ' 3002 ' .. jid)
  return jid .. '\trunning\t' .. #RUNNING .. '\n' .. RUNNING
end

local function complete(_, a)
  local jid, key = a[1], 'sm:j:' .. a[1]
  redis.call('TIME')
  redis.call('MGET', 'sm:counters', 'sm:config', key, 'sm:!')
  redis.call('ZREM', 'sm:q:emails-locks', a[2] .. BLANKS .. jid)
  redis.call('HDEL', 'sm:w:worker-1:jobs', 'j' .. jid, 'r' .. a[3])
  redis.call('RPUSH', 'sm:s:run-new:1795219200000:emails', '0 1258')
  tell('\tcompleted\t', jid, '\temails\tworker-1\t3002\t0')
  redis.call('ZADD', 'sm:completed', MOMENT, a[2] .. jid)
  redis.call('MSET', key, COMPLETE, 'sm:counters', COUNTERS)
  return 'complete'
end

-- The keys of jobs, and the texts to write under each.
local function records(jids, record)
  local job_keys, texts = {}, {'sm:counters', COUNTERS}
  for i = 1, #jids do
    job_keys[i] = 'sm:j:' .. jids[i]
    texts[2 * i + 1], texts[2 * i + 2] = job_keys[i], record
  end
  return job_keys, texts
end

-- The members of a sorted set, each behind the same score.
local function scored(score, before, jids)
  local found = {}
  for i = 1, #jids do
    found[2 * i - 1], found[2 * i] = score, before .. jids[i]
  end
  return found
end

local function put_many(_, a)
  local seq = table.remove(a)
  local job_keys, texts = records(a, WAITING)
  redis.call('TIME')
  redis.call('MGET', 'sm:counters', 'sm:config')
  redis.call('MGET', unpack(job_keys))
  redis.call('GET', 'sm:q:emails-state')
  tell_all('\tput\t', a, '\temails\tSendEmail\twaiting')
  redis.call('ZADD', 'sm:q:emails-work', unpack(scored('0', '01795294727303' .. seq, a)))
  redis.call('MSET', unpack(texts))
  return {'OK', a}
end

local function pop_many(_, a)
  redis.call('TIME')
  redis.call('MGET', 'sm:counters', 'sm:config', 'sm:q:emails-state', 'sm:!')
  redis.call('HMGET', 'sm:w:worker-1:jobs', '', 'r' .. a[1])
  local popped, jids = redis.call('ZPOPMIN', 'sm:q:emails-work', a[3]), {}
  local durations, held, shown = {}, {'r' .. a[1], a[1]}, {}
  for i = 1, #popped / 2 do
    jids[i] = string.sub(popped[2 * i - 1], -32)
    durations[i], held[2 * i + 1], held[2 * i + 2] = '3', 'j' .. jids[i], '3002'
    shown[3 * i - 2], shown[3 * i - 1], shown[3 * i] = jids[i] .. '\trunning\t' .. #RUNNING, '\n', RUNNING
  end
  local job_keys, texts = records(jids, RUNNING)
  redis.call('MGET', unpack(job_keys))
  tell_all('\tpopped\t', jids, '\temails\tworker-1\t3')
  redis.call('RPUSH', 'sm:s:wait-new:1795219200000:emails', unpack(durations))
  redis.call('ZADD', 'sm:q:emails-locks', unpack(scored('1795294787306', a[2] .. BLANKS, jids)))
  redis.call('MSET', unpack(texts))
  redis.call('HSET', 'sm:w:worker-1:jobs', unpack(held))
  return table.concat(shown)
end

local function complete_many(_, a)
  local request, seq = table.remove(a), table.remove(a)
  local job_keys, texts = records(a, COMPLETE)
  local durations, locks, fields = {}, {}, {}
  for i = 1, #a do
    durations[i], locks[i] = '0 1258', seq .. BLANKS .. a[i]
    fields[2 * i - 1], fields[2 * i] = 'j' .. a[i], 'r' .. request
  end
  redis.call('TIME')
  redis.call('MGET', 'sm:counters', 'sm:config')
  redis.call('MGET', unpack(job_keys))
  tell_all('\tcompleted\t', a, '\temails\tworker-1\t3002\t0')
  redis.call('RPUSH', 'sm:s:run-new:1795219200000:emails', unpack(durations))
  redis.call('ZREM', 'sm:q:emails-locks', unpack(locks))
  redis.call('ZADD', 'sm:completed', unpack(scored(MOMENT, seq, a)))
  redis.call('HDEL', 'sm:w:worker-1:jobs', unpack(fields))
  redis.call('MSET', unpack(texts))
  return {'OK', a}
end

redis.register_function('same_put', put)
redis.register_function('same_pop', pop)
redis.register_function('same_complete', complete)
redis.register_function('same_put_many', put_many)
redis.register_function('same_pop_many', pop_many)
redis.register_function('same_complete_many', complete_many)

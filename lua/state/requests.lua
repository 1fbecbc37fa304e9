-- Requests: sets of jobs, the sub-requests, with a limit on how many run at a time. The rules are described in
-- qmodel/model/state/requests.py.
--
-- A request is a text, and a sorted set of its sub-requests: score 1 until they have ended, 1 more if they were given
-- dependencies, 2 more if they have yielded their slot; then that of their outcome. A list has them in their order. Its data is a text of its own, which is not
-- rewritten with each sub-request. For each state there is a sorted set of requests. The jobs that wait for a request are in
-- a sorted set, too (state/dependencies.lua).

local requests = {}

local NEVER = 99999999999999

local OUTCOMES = {'done', 'failed', 'canceled'}
local DIGITS = {done = '1', failed = '2', canceled = '3'} -- of the outcomes, in scores

local STATES = {open = true, closed = true}
local ENDED = {'done', 'canceled'}

local FIELDS = {
  'state', 'state_at', 'seq', 'queue', 'priority', 'limit', 'first_priority', 'first_limit', 'total', 'done', 'failed',
  'canceled', 'opened_at', 'ended_at', 'reached',
}
local ENDS = { -- only if one is set
  'deadline_at', 'lease_ms', 'open_until', 'fail_fast', 'reason', 'ending', 'keep_places',
}
local TEXTS = {state = true, queue = true, reached = true, reason = true}
local NONE, SOME = '-', '>' -- what a text is for `reached`: nothing, or this before it

local function list_of(state)
  return keys.requests_in(state)
end

local function strike(request)
  store.remove(keys.requests_in(request.state), keys.member(request.seq, request.id))
end

local function member(request)
  return keys.member(request.seq, request.id)
end

local function decode(id, text)
  local request, at = {
    id = id, deadline_at = 0, lease_ms = 0, open_until = 0, fail_fast = 0, reason = NONE, ending = 0, keep_places = 0,
  }, 1
  for value in string.gmatch(text, '%C+') do
    local field = FIELDS[at] or ENDS[at - #FIELDS]
    request[field] = TEXTS[field] and value or tonumber(value)
    at = at + 1
  end
  local reached = request.reached or NONE -- a request of an older library does not have it
  request.reached = reached ~= NONE and string.sub(reached, #SOME + 1)
  return request
end

-- A request, or false if it does not exist; the same table each time within an operation.
function requests.get(id)
  local known = store.requests or {}
  store.requests = known
  if known[id] == nil then
    local text = store.read(keys.request(id))
    known[id] = text and decode(id, text)
  end
  return known[id]
end

-- A request that is known to exist.
function requests.load(id)
  return requests.get(id) or writes.fail(keys.request(id), 'is missing, but its id is in a list')
end

-- A request, or refuse. An operation on a request may change a thousand jobs, so writes are no longer buffered.
function requests.find(id)
  store.many = true
  return requests.get(id) or refusals.refuse('REQUEST_NOT_FOUND', id)
end

-- A new request, in no state yet.
function requests.create(id, queue, priority, limit, now)
  store.many = true
  return {
    id = id, queue = queue, priority = priority, limit = limit, first_priority = priority, first_limit = limit,
    state = '', state_at = now, seq = 0, total = 0, done = 0, failed = 0, canceled = 0, opened_at = now, ended_at = 0,
    reached = false, deadline_at = 0, lease_ms = 0, open_until = 0, fail_fast = 0, reason = NONE, ending = 0,
    keep_places = 0,
  }
end

-- How many of its sub-requests may be in order or leased: none once the request is canceled; but once a failure has
-- canceled those that had not begun, the others go on.
function requests.limit(id)
  local request = requests.load(id)
  local goes_on = request.reason == 'failed' and request.ending == 0
  return (STATES[request.state] or goes_on) and request.limit or 0
end

-- Whether a request has ended.
function requests.has_ended(request)
  return request.state == ENDED[1] or request.state == ENDED[2]
end

-- Whether a request has ended with each of its sub-requests done.
function requests.has_ended_well(request)
  return request.state == ENDED[1] and request.done == request.total
end

-- Change the state of a request, as of the last event.
function requests.move(now, request, state)
  if request.state ~= '' then
    strike(request)
  end
  request.state, request.state_at, request.seq = state, now, store.last()
  if requests.has_ended(request) then
    request.ended_at = now
  end
  store.add(list_of(state), now, member(request))
end

-- Store the changes of a request, at the end of the operation, and when it is due.
function requests.save(request)
  request.changed = true
  store.requests = store.requests or {}
  store.requests[request.id] = request
  if request.deadline_at == 0 and request.lease_ms == 0 and request.fail_fast == 0 then
    return
  end
  local moment = requests.due_at(request)
  if moment then
    writes.put_off('ZADD', keys.queue(request.queue, '-ends'), store.text(moment), request.id)
    queues.expect_end(request.queue, moment)
  else
    writes.put_off('ZREM', keys.queue(request.queue, '-ends'), request.id)
  end
end

local function write(request)
  local values = {}
  for i, field in ipairs(FIELDS) do
    values[i] = field ~= 'reached' and (TEXTS[field] and request[field] or store.text(request[field]))
  end
  values[#FIELDS] = request.reached and SOME .. request.reached or NONE
  local ends = request.deadline_at > 0 or request.lease_ms > 0 or request.fail_fast > 0
  if ends or request.keep_places > 0 or request.reason ~= NONE then
    for _, field in ipairs(ENDS) do
      values[#values + 1] = TEXTS[field] and request[field] or store.text(request[field])
    end
  end
  store.write(keys.request(request.id), table.concat(values, '\t'))
end

-- Write the requests that have changed.
function requests.flush()
  for _, request in pairs(store.requests) do
    if request and request.changed then
      write(request)
    end
  end
end

-- How many requests are in a state, and a page of their ids, longest in it first.
function requests.page(state, offset, count)
  local ids = {}
  for i, one in ipairs(writes.fetch('ZRANGE', list_of(state), offset, offset + count - 1)) do
    ids[i] = keys.jid_of(one)
  end
  return writes.fetch('ZCARD', list_of(state)), ids
end

-- ---- ending by itself

-- Apply the options that let a request end by itself.
function requests.set_ends(now, request, op)
  request.deadline_at = op.deadline_ms and now + op.deadline_ms or 0
  request.fail_fast = op.fail_fast and 1 or 0
  request.lease_ms = op.lease_ms or 0
  request.keep_places = op.keep_places and 1 or 0
  requests.renew(now, request)
end

-- Renew the lease on an open request, if it has one.
function requests.renew(now, request)
  request.open_until = request.lease_ms > 0 and now + request.lease_ms or 0
end

-- When the engine has something to do for a request, or nil.
function requests.due_at(request)
  if requests.has_ended(request) then
    return nil
  end
  if request.ending == 1 then
    return 0
  end
  if request.state == 'canceling' and request.reason ~= 'failed' then
    return nil
  end
  local open_until = request.state == 'open' and request.open_until or 0
  if open_until == 0 or request.deadline_at == 0 then
    return open_until + request.deadline_at > 0 and open_until + request.deadline_at or nil
  end
  return math.min(open_until, request.deadline_at)
end

-- Whether the deadline of a request is over.
function requests.is_late(now, request)
  return request.deadline_at > 0 and request.deadline_at <= now
end

-- How many requests of a queue may end by themselves.
function requests.timed(queue)
  return writes.fetch('ZCARD', keys.queue(queue, '-ends'))
end

-- The due requests of a queue, earliest first.
function requests.due(queue, now, most)
  local name, found = queue, {}
  queue = queues.of(name)
  if queue.expires <= now then
    for i, id in ipairs(writes.fetch('ZRANGEBYSCORE', keys.queue(name, '-ends'), '-inf', now, 'LIMIT', 0, most)) do
      found[i] = requests.load(id)
    end
  end
  return found
end

-- ---- sub-requests

-- Whether a job is, or was, a sub-request of this request.
function requests.knows(request, jid)
  return writes.fetch('ZSCORE', keys.sub_requests(request.id), jid) and true or false
end

-- Add a job to the sub-requests.
function requests.add(request, jid)
  store.add(keys.sub_requests(request.id), 1, jid)
  request.total = request.total + 1
end

-- Note the order of added sub-requests: they come after all others.
function requests.enlist(request, jids)
  writes.put_off_many('RPUSH', keys.request_order(request.id), jids, #jids)
end

-- Count a sub-request that has ended: done, failed or canceled.
function requests.finish(request, job, outcome)
  store.add(keys.sub_requests(request.id), '-' .. store.text(job.seq) .. DIGITS[outcome], job.jid)
  request[outcome] = request[outcome] + 1
end

-- How many sub-requests have not ended.
function requests.left(request)
  return request.total - request.done - request.failed - request.canceled
end

-- ---- plain operations (ops/plain.lua)

-- While not more sub-requests than its limit have not ended, each that is ready has a slot, and none is parked.

local PLAIN = '^((%l+)\t%d+\t%d+\t(%C+)\t(%-?%d+)\t(%d+)\t%-?%d+\t%d+\t)(%d+)\t(%d+)(\t(%d+)\t(%d+)\t.*)$'
local EXTENDED = '^\t%d+\t%d+\t%d+\t%d+\t%C+\t' -- what follows the done ones, if there is more than `reached` at its end

-- The text of an open request with one sub-request more, which gets a slot; then its queue and its priority. Nil, if there
-- is more to do: a request that may end by itself has more fields, and adding may renew its lease.
function requests.grown(text)
  local head, state, queue, priority, limit, total, done, rest, failed, canceled = string.match(text or '', PLAIN)
  if state == 'open' and not string.find(rest, EXTENDED) and total - done - failed - canceled < tonumber(limit) then
    return head .. store.text(total + 1) .. '\t' .. done .. rest, queue, priority
  end
end

local done, row, oldest -- a list of requests; in which row of operations no request of its namespace had ended before a time

-- When the first request of a list has ended.
local function first_of(list)
  return tonumber(writes.fetch('ZRANGE', list, 0, 0, 'WITHSCORES')[2] or NEVER)
end

-- Whether a request does not know a job, and none is past retention. No plain operation ends a request.
function requests.takes_plain(now, id, jid)
  local list = list_of('done')
  if done ~= list or row ~= store.row then
    done, row, oldest = list, store.row, math.min(first_of(list), first_of(list_of('canceled')))
  end
  return oldest > now - config.value('requests-history') and not writes.fetch('ZSCORE', keys.sub_requests(id), jid)
end

-- Add a new sub-request with a slot, after its record was written.
function requests.add_plain(id, jid)
  writes.last('ZADD', keys.sub_requests(id), '1', jid)
  writes.last('ZADD', keys.concurrency_key('request:' .. id), '-inf', keys.member(0, jid))
  writes.last('RPUSH', keys.request_order(id), jid)
end

-- The key of a request, and its text with one sub-request more that is done; nil if there is more to do.
function requests.done_plain(id)
  local key = keys.request(id)
  local head, state, _, _, limit, total, done, rest, failed, canceled =
    string.match(writes.fetch('GET', key) or '', PLAIN)
  local left = head and total - done - failed - canceled
  if (state == 'open' or state == 'closed' and left > 1) and left <= tonumber(limit) then
    return key, head .. total .. '\t' .. store.text(done + 1) .. rest
  end
end

-- Note that a sub-request with a slot is done since a sequence, after its record was written.
function requests.finish_plain(id, jid, seq)
  writes.last('ZADD', keys.sub_requests(id), '-' .. seq .. DIGITS.done, jid)
  writes.last('ZREM', keys.concurrency_key('request:' .. id), keys.member(0, jid))
end

-- Some sub-requests that have not ended, by their marks and ids; without `begun`, none that has yielded its slot.
function requests.unfinished(request, most, begun)
  return writes.fetch('ZRANGEBYSCORE', keys.sub_requests(request.id), 1, begun and 4 or 2, 'LIMIT', 0, most)
end

-- Note that a sub-request was given dependencies, and whether it has yielded its slot.
function requests.note_dependencies(id, jid, yielded)
  store.add(keys.sub_requests(id), yielded and 4 or 2, jid)
end

-- Note that a sub-request that has begun gives up its slot: for those that it waits for, or until its time.
function requests.note_yield(id, job)
  store.add(keys.sub_requests(id), job.waits ~= '0' and 4 or 3, job.jid)
end

-- Some sub-requests that have not ended and were given dependencies, by id, last those that have yielded their slots; none
-- if there is no such request.
function requests.with_dependencies(id, most)
  local found = writes.fetch('ZRANGEBYSCORE', keys.sub_requests(id), 2, 2, 'LIMIT', 0, most)
  for _, jid in ipairs(writes.fetch('ZRANGEBYSCORE', keys.sub_requests(id), 4, 4, 'LIMIT', 0, most - #found)) do
    found[#found + 1] = jid
  end
  return found
end

-- A page of the sub-requests, in the order in which they were added.
function requests.ordered(request, offset, count)
  return writes.fetch('LRANGE', keys.request_order(request.id), offset, offset + count - 1)
end

-- How some sub-requests ended, and the sequences of their ends; empty for those that have not ended, false for those that
-- are forgotten.
function requests.ends_of(request, jids)
  local found = jids[1] and writes.fetch('ZMSCORE', keys.sub_requests(request.id), unpack(jids)) or {}
  local outcomes, seqs = {}, {}
  for i = 1, #jids do
    local score = found[i] and -tonumber(found[i])
    outcomes[i] = score and (OUTCOMES[score % 10] or '') or false
    seqs[i] = score and math.floor(score / 10)
  end
  return outcomes, seqs
end

-- How many sub-requests were added.
function requests.count(request)
  return writes.fetch('LLEN', keys.request_order(request.id))
end

-- Set the data of a new request.
function requests.set_data(request, data)
  if data ~= '' then
    store.write(keys.request_data(request.id), data)
  end
end

-- The data of a request.
function requests.data(request)
  return store.read(keys.request_data(request.id)) or ''
end

-- ---- forgetting

-- Keep an ended request that jobs wait for as if it had ended now.
function requests.postpone(now, request)
  strike(request)
  request.state_at = now
  store.add(list_of(request.state), now, member(request))
  requests.save(request)
end

-- The oldest request of each final state that ended by `until`.
function requests.over(until_)
  local found = {}
  for _, state in ipairs(ENDED) do
    for _, one in ipairs(writes.fetch('ZRANGEBYSCORE', list_of(state), '-inf', until_, 'LIMIT', 0, 1)) do
      found[#found + 1] = requests.load(keys.jid_of(one))
    end
  end
  return found
end

-- The sub-requests of an ended request that are forgotten next, those that ended last first; their outcomes, and the
-- sequences of their ends.
function requests.first_ended(request, most)
  local found, jids, outcomes = writes.fetch('ZRANGE', keys.sub_requests(request.id), 0, most - 1, 'WITHSCORES'), {}, {}
  local seqs = {}
  for i = 1, #found, 2 do
    local score = -tonumber(found[i + 1])
    jids[#jids + 1] = found[i]
    outcomes[#jids], seqs[#jids] = OUTCOMES[score % 10] or '', math.floor(score / 10)
  end
  return jids, outcomes, seqs
end

-- Forget some sub-requests of an ended request, and with the last of them the request; give how many are left.
function requests.forget(request, most)
  local key = keys.sub_requests(request.id)
  writes.pop_first(key, most)
  local left = writes.fetch('ZCARD', key)
  if left == 0 then
    strike(request)
    store.requests[request.id] = false
    store.write(keys.request(request.id), false)
    store.write(keys.request_order(request.id), false)
    store.write(keys.request_data(request.id), false)
  end
  return left
end

-- Everything about a request; `running` of its sub-requests have a valid lease.
function requests.view(request, running)
  return {
    request.id, request.queue, request.priority, request.limit, request.state, request.total,
    requests.left(request) - running, running, request.done, request.failed, request.canceled, request.opened_at,
    request.ended_at, request.deadline_at, request.state == 'open' and request.open_until or 0, request.fail_fast,
    request.reason ~= NONE and request.reason or '', dependencies.count(request), requests.data(request),
    request.keep_places,
  }
end

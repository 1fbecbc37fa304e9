-- Put in the plain case (ops/plain.lua).

local plain_put = {}

local INLINE = 1024 -- the most bytes of data within a record
local BETWEEN = '\255' -- what stands between tags in a record
local WORDS = 6 -- the strings of a plain put: moment, request, queue, jid, klass, data
local MOST = 128 -- the most bytes of an id
local RETRIES = '5' -- of a put that says nothing of them
local ADDED = 9 -- the strings of a plain addition: moment, request, id, `jobs 4`, queue, jid, klass, data

-- Whether the deduplication key of a put is free, and its request new.
local function is_free(now, of, request)
  return uniques.is_free(now, of) and (request == '' or idempotency.is_new('put ' .. request))
end

-- Let a new job hold its deduplication key, and remember its request, after its record was written.
local function hold(moment, jid, of, request)
  uniques.hold_plain(of, jid, moment)
  if request ~= '' then
    idempotency.enter('put ' .. request, jid)
  end
end

-- Enter a new job into the lists of its tags, and let it hold its key, if it has one, after its record was written.
local function list(moment, id, jid, request, said)
  tags.list_plain(said.tags, id, jid)
  if said.unique then
    hold(moment, jid, said.unique, request)
  end
end

-- Whether the required arguments of a put, and its request, are such that they need no other look.
local function is_known(request, name, jid, klass, data)
  local names = arguments.names
  return data and #data <= INLINE and names[name] and names[klass] and arguments.is_id(jid, 128)
    and (request == '' or arguments.is_id(request, 64))
end

-- Whether a queue is listed, and its jobs take no turns.
local function is_listed_unfair(queue)
  return queue.first_seen ~= '' and not (store.config and config.is_fair(queue.name))
end

-- Wake idle workers for new jobs.
local function wake(queue, count)
  if queue.idle ~= '0' then
    queues.wake(queue, count)
  end
end

local BARE = {tags = {}, count = 0} -- what most puts say

-- What a put says in its pairs; nil, if it is not plain.
local function said_by(args)
  if args[WORDS + 1] then
    return plain_options.asked(args, WORDS + 1, #args)
  end
  return BARE
end

-- What a put says and the turn of its job in a fair queue; the turn is its turn from now on.
local function with_turn(now, name, said)
  if now == 0 then -- what is ready at 0 is first, and needs no turn
    return said
  end
  local priority = said.priority or '0'
  local key, first = said.fair_key or said.throttles or '', queues.first(name, priority)
  said = said == BARE and {tags = {}, count = 0} or said
  said.count, said.last = said.count + 1, 'turn'
  said.turn = store.text(turns.take_next(name, priority, key, said.fair_weight, now, first))
  return said
end

-- The rare part of the record, and the fact of the tags for the event, with a tab before it; empty if there are none.
local function extras(said)
  if said == BARE then
    return '', ''
  end
  local found = said.tags
  local fact = found[1] and '\t' .. table.concat(found, tags.BETWEEN_TAGS) or ''
  return plain_records.rare(table.concat(found, BETWEEN), plain_options.text(said)), fact
end

-- Where a new job stands in the order of its queue.
local function rank_of(now, moment, id, jid, said)
  if said.lifo == '1' and not said.turn then
    return keys.lifo_member(now, tonumber(id), jid)
  end
  return keys.ready_member_of(said.turn or moment, id, jid)
end

-- The first number of that place: the priority, or less where jobs age.
local function score_of(name, now, priority)
  local rate = store.config and config.aging(name) or 0
  return rate == 0 and priority or aging.first_number(rate, priority, now)
end

-- Record an operation with one event, if operations are recorded; give its reply, which is a text or 1.
local function recorded(operation, moment, args, seq, reply, simulated)
  if plain_journal.is_on(simulated) then
    local outcome = reply == 1 and plain_journal.ONE or plain_journal.text(reply)
    plain_journal.enter(operation, moment, args[2], args, 1, #args, seq, outcome, 0, 0)
  end
  return reply
end

-- Put a new job into a listed queue.
function plain_put.put(now, moment, args, simulated)
  local request, name, jid, klass, data, said = args[2], args[3], args[4], args[5], args[6], said_by(args)
  if not said or not is_known(request, name, jid, klass, data) then
    return nil
  end
  local key = keys.job(jid)
  local quiet, found, state = store.open_plain(simulated, key, queues.state_key(name))
  local queue = queues.begin(name, state)
  if not quiet or found or queue.first_seen == '' or said.unique and not is_free(now, said.unique, request) then
    return nil
  end

  if store.config and config.is_fair(name) then
    said = with_turn(now, name, said)
  end
  local rare, fact = extras(said)
  local id = store.tell(moment .. '\tput\t' .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting' .. fact)
  if said.unique and request ~= '' then
    idempotency.make_room()
  end
  wake(queue, 1)
  plain.answer = store.config and recorded('put', moment, args, id, jid, simulated) or jid
  local priority, retries = said.priority or '0', said.retries or RETRIES
  store.write_plain(key, plain_records.waiting(id, name, moment, klass, request, data, rare, priority, retries))
  writes.last('ZADD', queue.work_key, score_of(name, now, priority), rank_of(now, moment, id, jid, said))
  if said ~= BARE then
    list(moment, id, jid, request, said)
  end
  store.end_plain(simulated)
end

-- Whether an open request takes a job, and the request of the addition is new.
local function takes(now, id, jid, request)
  return requests.takes_plain(now, id, jid) and (request == '' or idempotency.is_new('request_add ' .. request))
end

-- Add a new job to an open request that has a free slot.
function plain_put.request_add(now, moment, args, simulated)
  local request, id, name, jid, klass, data = args[2], args[3], args[6], args[7], args[8], args[9]
  if #args ~= ADDED or args[4] ~= 'jobs' or args[5] ~= '4' or not arguments.is_id(id, 128)
    or not is_known(request, name, jid, klass, data) then
    return nil
  end
  local key, request_key = keys.job(jid), keys.request(id)
  local quiet, found, state, text = store.open_plain(simulated, key, queues.state_key(name), request_key)
  local queue = queues.begin(name, state)
  local grown, of, priority = requests.grown(text)
  if not quiet or found or of ~= name or not is_listed_unfair(queue) or not takes(now, id, jid, request) then
    return nil
  end

  local rare = plain_records.rare('', 'line=' .. store.seq_text() .. plain_options.OF_REQUEST .. id)
  local event = store.tell(moment .. '\tput\t' .. jid .. '\t' .. name .. '\t' .. klass .. '\twaiting')
  if request ~= '' then
    idempotency.make_room()
  end
  wake(queue, 1)
  plain.answer = store.config and recorded('request_add', moment, args, event, 1, simulated) or 1
  store.save(request_key, grown)
  store.write_plain(key, plain_records.waiting(event, name, moment, klass, '', data, rare, priority, RETRIES))
  writes.last('ZADD', queue.work_key, score_of(name, now, priority), keys.ready_member_of(moment, event, jid))
  requests.add_plain(id, jid)
  if request ~= '' then
    idempotency.enter('request_add ' .. request, 1)
  end
  store.end_plain(simulated)
end

-- ---- several puts

-- Read the queue of new jobs; give it, and how many of the jobs are new before the first that is not. Nil, if it is not
-- plain. The keys of the jobs stand from the fifth place of `wanted` on.
local function open(name, count, wanted, simulated)
  wanted[4] = queues.state_key(name)
  local quiet, found = store.open_all_plain(simulated, wanted)
  local queue = queues.begin(name, found[4])
  if not quiet or not is_listed_unfair(queue) then
    return nil
  end
  for i = 1, count do
    if found[i + 4] then
      return queue, i - 1
    end
  end
  return queue, count
end

-- Give those among several new jobs their place and record that say more.
local function place_others(now, moment, queue, ids, args, at_jids, saids, requests, members, written)
  local name, request = queue.name, requests
  for i, said in pairs(saids) do
    local at, to, priority = at_jids[i], 2 * i, said.priority or '0'
    if type(requests) == 'table' then
      request = requests[i]
    end
    members[to - 1], members[to] = score_of(name, now, priority), rank_of(now, moment, ids[i], args[at], said)
    written[to] = plain_records.waiting(ids[i], name, moment, args[at + 1], request, args[at + 2],
      plain_records.rare('', plain_options.text(said)), priority, said.retries or RETRIES)
  end
end

-- The events of new jobs, in three parts each.
local function events_of(moment, name, args, at_jids, jids)
  local events, size, head, klass, tail = store.list(3 * #jids), 0, '\n' .. moment .. '\tput\t', nil, nil
  for i = 1, #jids do
    local of = args[at_jids[i] + 1]
    if of ~= klass then
      klass, tail = of, '\t' .. name .. '\t' .. of .. '\twaiting'
    end
    events[size + 1] = head
    events[size + 2] = jids[i]
    events[size + 3] = tail
    size = size + 3
  end
  return events
end

-- Put jobs into a queue, as many as there are ids; give the keys and texts of their records, and the ids of the events. The
-- positions of their ids among the arguments are given; a job type and data follow each. The requests are a list, or one
-- for all; `saids` has by their numbers what puts say of jobs beyond that.
local function put_all(now, moment, queue, args, at_jids, jids, saids, requests, wanted)
  local count, ids = #jids, store.next_ids(#jids)
  local members = keys.ready_members_of(moment, ids, jids, score_of(queue.name, now, '0'))
  local texts = plain_records.put_all(args, at_jids, wanted, ids, queue.name, moment, requests)
  place_others(now, moment, queue, ids, args, at_jids, saids, requests, members, texts)
  store.tell_all(events_of(moment, queue.name, args, at_jids, jids), 3, count)
  wake(queue, count)
  writes.put_off_many('ZADD', queue.work_key, members, 2 * count)
  return texts, ids
end

-- What a put of several says beyond its four strings, which begins at a place and has so many strings, more than four; nil if
-- it is not plain.
local function more_of(args, at, size)
  return size and plain_options.asked_simply(args, at + 4, at + size - 1)
end

-- The ids of the jobs of a batch, where they stand, and what is said of each beyond that, by their numbers; nil if they are
-- not plain jobs for one queue. A job is `jobs 4 queue jid klass data`, with a greater number if more is said. The keys of
-- the jobs are added to a list.
local function new_jids(args, name, wanted)
  local jids, places, saids, met, count, names, units = {}, {}, {}, {}, 0, arguments.names, 0
  local at, last, before = 3, #args, keys.job('')
  while at <= last do
    local size, jid, data = args[at + 1], args[at + 3], args[at + 5]
    if args[at] ~= 'jobs' or args[at + 2] ~= name or not names[args[at + 4]] or not data or #data > INLINE or met[jid]
      or (#jid > MOST or not string.find(jid, '^%w+$')) and not arguments.is_id(jid, MOST) then
      return nil
    end
    count = count + 1
    met[jid], jids[count], places[count] = true, jid, at + 3
    wanted[count + 4] = before .. jid
    if size == '4' then
      at = at + 6
    else
      size = arguments.whole(size, 4, last - at - 1)
      saids[count] = more_of(args, at + 2, size)
      if not saids[count] then
        return nil
      end
      units, at = units + size / 2 - 2, at + 2 + size
    end
  end
  return count <= catalogue.most and units + 2 * count <= budget.UNITS and jids, places, saids
end

-- Put new jobs into a listed queue.
function plain_put.put_many(now, moment, args, simulated)
  local request, name, wanted = args[2], args[5], {false, false, false, false}
  if not name or not arguments.names[name] or request ~= '' and not arguments.is_id(request, 64) then
    return nil
  end
  local jids, places, saids = new_jids(args, name, wanted)
  if not jids then
    return nil
  end
  local queue, count = open(name, #jids, wanted, simulated)
  if not queue or count < #jids then
    return nil
  end

  local texts = put_all(now, moment, queue, args, places, jids, saids, request, wanted)
  if plain_journal.is_on(simulated) then
    local outcome, bytes = plain_journal.texts(jids)
    plain_journal.enter('put_many', moment, request, args, 1, #args, store.seq_text(), outcome, bytes, 0)
  end
  plain.answer = {'OK', jids}
  store.write_all_plain(texts)
  store.end_plain(simulated)
end

-- The requests of puts into one queue, of which each begins at a place among the arguments, their ids and where these stand,
-- and what is said of each beyond that, up to the first that is not plain. The keys of the jobs are added to a list.
local function asked(args, places, sizes, name, wanted)
  local requests, jids, at_jids, saids, met, names = {}, {}, {}, {}, {}, arguments.names
  for i = 1, #places do
    local at, size = places[i], sizes[i]
    local request, jid = args[at + 1], args[at + 3]
    local said = size > WORDS and more_of(args, at + 2, size - 2)
    if size < WORDS or said == nil or args[at + 2] ~= name or not names[args[at + 4]] or #args[at + 5] > INLINE or met[jid]
      or not arguments.is_id(jid, 128) or request ~= '' and not arguments.is_id(request, 64) then
      break
    end
    met[jid] = true
    requests[i], jids[i], at_jids[i], saids[i], wanted[i + 4] = request, jid, at + 3, said or nil, keys.job(jid)
  end
  return requests, jids, at_jids, saids
end

-- Put new jobs, each by an operation of its own, into a listed queue; give how many.
function plain_put.group(now, moment, args, places, sizes, simulated)
  local name, wanted = args[places[1] + 2], {false, false, false, false}
  if not name or not arguments.names[name] then
    return 0
  end
  local requests, jids, at_jids, saids = asked(args, places, sizes, name, wanted)
  if not requests[2] then
    return 0
  end
  local queue, count = open(name, #requests, wanted, simulated)
  if not queue or count < 2 then
    return 0
  end

  for i = count + 1, #jids do
    jids[i], saids[i] = nil, nil
  end
  local texts, ids = put_all(now, moment, queue, args, at_jids, jids, saids, requests, wanted)
  for i = 1, plain_journal.is_on(simulated) and count or 0 do
    local seq, outcome = plain_journal.seq_of(ids[i]), plain_journal.text(jids[i])
    plain_journal.enter('put', moment, requests[i], args, places[i], sizes[i], seq, outcome, 0, 0)
  end
  return plain.answer_all(jids, texts, simulated)
end

-- The records of plain jobs (ops/plain.lua): state/records.lua tells what stands in them.

local plain_records = {}

local KEPT = 512 -- the most decoded records of leased jobs
plain_records.MOVING = 2 -- the units for moving a plain job without options

-- The number of stages after one more. A longer history may have to be trimmed.
local NEXT = {['1'] = '2', ['2'] = '3', ['3'] = '4'}
plain_records.NEXT = NEXT

-- Records without a rare part, or with nothing in it but tags and options (state/records.lua).
local WAITING = '^waiting\t%d+\t(%d)\t(%d+)\t%C+\t((%d+)\t%d+\t%d+)\t\t%d+\t\t%d+\t0\t0\t()'
local RUNNING = '^running\t(%d+)\t(%d)\t(%d+)\t(%C+)\t(%d+\t(%d+))\t%d+\t(%C+)\t(%d+)\t(%C*)\t(%d+)\t%d+\t0\t()'
local BARE_WAITING = '^waiting\t%d+\t(%d)\t0\t%C+\t(((%d+)\t(%d+))\t%d+)\t\t%d+\t\t%d+\t0\t0\t()'
local BARE_RUNNING = '^running\t(%d+)\t(%d)\t0\t(%C+)\t(%d+\t(%d+))\t%d+\t(%C+)\t(%d+)\t(%C*)\t(%d+)\t%d+\t0\t()'
local COMPLETE = '^complete\t%d+\t([1-7])\t(%d+)\t'
local FEW = '^0\t0\t(%C*)\t\t0\t\t0\t0\t0\t0\t(%C*)\n'
local TAGS = '^0\t0\t(%C*)'
local ENDED = '^0\t0\t\t\t0\t\t0\t%d%d?%d?\t0\t0\t(%C*)\n'

-- The time from a moment, which is text, until now.
function plain_records.since(now, moment)
  local passed = now - moment
  return passed > 0 and passed or 0
end

-- The tags of a record as they stand in it, whose rare part has this length and nothing but tags and options.
function plain_records.tags_of(text, more)
  return string.match(text, TAGS, -more)
end

-- The first tags of a record whose rare part, of this length, has nothing but tags and options.
function plain_records.first_tags(text, more, most)
  local found = {}
  for tag in string.gmatch((string.match(text, FEW, -more)), '[^\255]+') do
    found[#found + 1] = tag
    if #found == most then
      break
    end
  end
  return found
end

-- What the options of a record say (plain_options.read), whose rare part has nothing but those and tags; after a turn also
-- the rare part without it. Nil if there is more. `more` is the length of the rare part. A sub-request with a slot holds
-- the slot of its `request`.
local function options_of(text, more)
  if more == '0' then
    return '', ''
  end
  local tags_, options_ = string.match(text, FEW, -more)
  if not options_ then
    return nil
  elseif options_ == '' then
    return '', ''
  end
  local id = tags_ == '' and plain_options.request_of(options_)
  if id then
    return 'request', id
  end
  local held, of, turn, lease_ms, longest = plain_options.read(options_)
  local rare = turn and plain_records.rare(tags_, plain_options.without_turn(options_, turn))
  return held, of, turn, rare, lease_ms, longest
end

-- The record of a new job, as a put with this sequence writes it; with a rare part or '', and priority and retries as text.
function plain_records.waiting(id, name, moment, klass, request, data, rare, priority, retries)
  return 'waiting\t' .. id .. '\t1\t' .. (rare == '' and '0' or store.text(#rare)) .. '\t' .. name .. '\t' .. moment .. '\t' .. retries .. '\t' .. retries .. '\t\t0\t\t0\t0\t0\t' .. klass .. '\t' .. priority .. '\t' .. moment
    .. '\t' .. request .. '\t' .. store.text(#data) .. '\n' .. data .. 'put\t' .. moment .. '\t' .. name .. '\n' .. rare
end

-- The rare part of a new job with these tags and options, as in a record; '' where it has none.
function plain_records.rare(tags_, options_)
  if tags_ == '' and options_ == '' then
    return ''
  end
  return '0\t0\t' .. tags_ .. '\t\t0\t\t0\t0\t0\t0\t' .. options_ .. '\n'
end

-- The record of a job that is leased, and the length of its rare part. `text` is the one before, in which klass begins at
-- `at`; `rare` is its rare part, if that changes.
function plain_records.running(id, stages, more, name, tries, worker, token, request, moment, ends, text, at, rare)
  local size, last = more, -1 - more
  if rare then
    size = rare == '' and '0' or store.text(#rare)
  else
    rare = more == '0' and '' or string.sub(text, -more)
  end
  return 'running\t' .. id .. '\t' .. stages .. '\t' .. size .. '\t' .. name .. '\t' .. tries .. '\t' .. worker .. '\t'
    .. token .. '\t' .. request .. '\t' .. moment .. '\t' .. ends .. '\t0\t' .. string.sub(text, at, last)
    .. 'popped\t' .. moment .. '\t' .. worker .. '\t' .. token .. '\n' .. rare, size
end

-- The rare part of a record with a result.
local function with_result(text, more, result)
  local tags_, options_ = '', ''
  if more ~= '0' then
    tags_, options_ = string.match(text, FEW, -more)
  end
  return '0\t0\t' .. tags_ .. '\t\t0\t\t0\t' .. store.text(#result) .. '\t0\t0\t' .. options_ .. '\n' .. result
end

-- The record of a job that is complete, likewise.
function plain_records.complete(id, stages, more, name, tries, retries, token, popped_at, moment, text, at, result)
  local rare, last = '', -1
  if more ~= '0' then
    rare, last = string.sub(text, -more), -1 - more
  end
  if result ~= '' then
    rare = with_result(text, more, result)
    more = store.text(#rare)
  end
  return 'complete\t' .. id .. '\t' .. stages .. '\t' .. more .. '\t' .. name .. '\t' .. tries .. '\t' .. retries .. '\t\t'
    .. token .. '\t\t' .. popped_at .. '\t0\t' .. moment .. '\t' .. string.sub(text, at, last)
    .. 'completed\t' .. moment .. '\t' .. token .. '\tcomplete\n' .. rare
end

-- ---- the same three without a rare part, with the priority and the retries of a put that says nothing of them

function plain_records.waiting_bare(id, name, moment, klass, request, data)
  return 'waiting\t' .. id .. '\t1\t0\t' .. name .. '\t' .. moment .. '\t5\t5\t\t0\t\t0\t0\t0\t' .. klass .. '\t0\t' .. moment
    .. '\t' .. request .. '\t' .. store.text(#data) .. '\n' .. data .. 'put\t' .. moment .. '\t' .. name .. '\n'
end

function plain_records.running_bare(id, stages, name, tries, worker, token, request, moment, ends, rest)
  return 'running\t' .. id .. '\t' .. stages .. '\t0\t' .. name .. '\t' .. tries .. '\t' .. worker .. '\t' .. token
    .. '\t' .. request .. '\t' .. moment .. '\t' .. ends .. '\t0\t' .. rest
    .. 'popped\t' .. moment .. '\t' .. worker .. '\t' .. token .. '\n'
end

-- Of what the record of a leased job says.
function plain_records.complete_bare(id, of, moment)
  local token, popped_at = of[6], of[8]
  return 'complete\t' .. id .. '\t' .. of[2] .. '\t0\t' .. of[3] .. '\t' .. of[4] .. '\t' .. of[10] .. '\t\t' .. token
    .. '\t\t' .. popped_at .. '\t0\t' .. moment .. '\t' .. of[9] .. 'popped\t' .. popped_at .. '\t' .. of[5] .. '\t' .. token
    .. '\ncompleted\t' .. moment .. '\t' .. token .. '\tcomplete\n'
end

-- What the records of leased jobs say that have no rare part and a history that is still short when the job ends, and end
-- with the stage of the lease, by their text: the member of the lease, the number of stages after one more, the queue, when
-- the job was ready with its retries, the worker, the token, the field of the grant in the hash of the worker, when the job
-- was popped, the rest of the record before that stage, the retries, the field of the lease in that hash, and the key of the
-- job: two namespaces may have one text.
local leased, count = {}, 0

-- Keep what the record of a leased job says, if its history is short.
function plain_records.keep(record, of)
  if not of[2] then
    return
  elseif count >= KEPT then
    leased, count = {}, 0
  end
  leased[record], count = of, count + 1
end

-- Where to keep this of so many more, by their records.
function plain_records.keep_all(more)
  if count + more > KEPT then
    leased, count = {}, 0
  end
  count = count + more
  return leased
end

-- Where it is kept.
function plain_records.kept()
  return leased
end

-- What such a record says that has a short history and is not kept; nil for another one.
function plain_records.read_leased(text, jid)
  local seq, stages, name, tries, retries, worker, token, grant, popped_at, at = string.match(text, BARE_RUNNING)
  if not NEXT[stages] then
    return nil
  end
  local line = 'popped\t' .. popped_at .. '\t' .. worker .. '\t' .. token .. '\n'
  if string.sub(text, -#line) == line then
    return {keys.lease_member_of(seq, jid), NEXT[stages], name, tries, worker, token, 'r' .. grant, popped_at,
      string.sub(text, at, -1 - #line), retries, 'j' .. jid}
  end
end

-- The same, whether it is kept or not.
function plain_records.leased(text, jid, key)
  local of = leased[text]
  return of and of[12] == key and of or plain_records.read_leased(text, jid)
end

-- Forget what is kept of a record, because it was replaced.
function plain_records.forget(text)
  if leased[text] then
    leased[text], count = nil, count - 1
  end
end

-- What the record of a waiting job says that has no rare part and a short history: the number of its stages after one more,
-- when it is ready with its retries and how many are left, the first two of these together and alone, and where the rest
-- begins. Nil for another one.
function plain_records.bare_waiting(text)
  local stages, tries, two, ready_at, retries, at = string.match(text, BARE_WAITING)
  return stages and NEXT[stages], tries, two, ready_at, retries, at
end

-- ---- the same for several jobs of one queue, without a rare part. The parts that their records share come first.

-- The keys and records of new jobs, whose job types and data stand behind their ids among the arguments. The requests are a
-- list, or one for all.
function plain_records.put_all(args, at_jids, wanted, ids, name, moment, requests)
  local written, numbers, request, each = store.list(2 * #ids), store.numbers, requests, type(requests) == 'table'
  local klass, first
  local before, between = '\t1\t0\t' .. name .. '\t' .. moment .. '\t5\t5\t\t0\t\t0\t0\t0\t', '\t0\t' .. moment .. '\t'
  local last = 'put\t' .. moment .. '\t' .. name .. '\n'
  for i = 1, #ids do
    local at = at_jids[i]
    local data = args[at + 2]
    if each then
      request = requests[i]
    end
    if args[at + 1] ~= klass then
      klass = args[at + 1]
      first = before .. klass .. between
    end
    written[2 * i - 1] = wanted[i + 4]
    written[2 * i] = 'waiting\t' .. ids[i] .. first .. request .. '\t' .. (numbers[#data] or store.text(#data)) .. '\n'
      .. data .. last
  end
  return written
end

-- The keys and records of waiting jobs after they were leased, when each was ready, the stages of each, and whether there are
-- others: a record is false that has a rare part or a long history. What the records say is kept, with the leases and the
-- fields of the worker, where the history is short. The requests are a list, or one for all.
function plain_records.lease_all(texts, job_keys, ids, name, worker, requests, moment, ends, locks, fields)
  local written, ready, stages_of = store.list(2 * #ids), store.list(#ids), store.list(#ids)
  local kept = plain_records.keep_all(#ids)
  local first, by, times = '\t0\t' .. name .. '\t', '\t' .. worker .. '\t', '\t' .. moment .. '\t' .. ends .. '\t0\t'
  local each, request, last = type(requests) == 'table', requests, 'popped\t' .. moment .. by
  local digits, before, others = 0, '', false
  local grant = not each and 'r' .. request
  for i = 1, #ids do
    local text, id, to = texts[i] or '', ids[i], 2 * i
    local stages, tries, two, ready_at, retries, at = string.match(text, BARE_WAITING)
    stages = NEXT[stages]
    if each then
      request = requests[i]
      grant = 'r' .. request
    end
    if #id ~= digits then
      digits = #id
      before = epochs.before(digits)
    end
    local record = false
    if stages then
      local token, rest = before .. id, string.sub(text, at)
      record = 'running\t' .. id .. '\t' .. stages .. first .. tries .. by .. token .. '\t' .. request .. times
        .. rest .. last .. token .. '\n'
      local at_end = NEXT[stages]
      kept[record] = at_end and {
        locks[to], at_end, name, two, worker, token, grant, moment, rest, retries, fields[to - 1], job_keys[i],
      }
    else
      others = true
    end
    written[to - 1] = job_keys[i]
    written[to] = record
    ready[i] = ready_at
    stages_of[i] = stages
  end
  return written, ready, stages_of, others
end

-- The keys and records of leased jobs after they were completed, as many as there are ids; of each is given what its record
-- says. A record is false that has options or gets a result; say also whether there is one. What was kept of the records is
-- forgotten.
function plain_records.complete_all(found, wanted, all, ids, moment, given)
  local written, kept, gone, others, name, worker = store.list(2 * #ids), leased, 0, false, all[1][3], all[1][5]
  local before, stage, popped_at, ended, line = '\t0\t' .. name .. '\t', '\ncompleted\t' .. moment .. '\t', nil, nil, nil
  for i = 1, #ids do
    local one, text, record = all[i], found[i + 3], false
    if kept[text] then
      kept[text] = nil
      gone = gone + 1
    end
    if one[9] and not given[i] then
      local token = one[6]
      if one[8] ~= popped_at then
        popped_at = one[8]
        ended, line = '\t\t' .. popped_at .. '\t0\t' .. moment .. '\t', 'popped\t' .. popped_at .. '\t' .. worker .. '\t'
      end
      record = 'complete\t' .. ids[i] .. '\t' .. one[2] .. before .. one[4] .. '\t' .. one[10] .. '\t\t' .. token .. ended
        .. one[9] .. line .. token .. stage .. token .. '\tcomplete\n'
    else
      others = true
    end
    written[2 * i - 1] = wanted[i + 3]
    written[2 * i] = record
  end
  count = count - gone
  return written, others
end

-- Read the record of a waiting job: the number of its stages after one more, the length of its rare part, when it is ready,
-- that with its retries, where the rest begins, and what its options say. Nil, if it is not plain.
function plain_records.read_waiting(text)
  local stages, more, tries, ready_at, at = string.match(text or '', WAITING)
  stages = NEXT[stages]
  if not stages then
    return nil
  end
  local held, of, turn, rare, lease_ms, longest = options_of(text, more)
  if held then
    return stages, more, tries, ready_at, at, held, of, turn, rare, lease_ms, longest
  end
end

-- The units for moving a job with a short history, whose rare part has this length; false, if it has tags.
function plain_records.units(text, more)
  if more == '0' then
    return plain_records.MOVING
  end
  local tags_, options_ = string.match(text, FEW, -more)
  return tags_ == '' and plain_records.MOVING + plain_options.count(options_)
end

-- Read the record of a job that is leased, likewise.
function plain_records.read_running(text)
  local seq, stages, more, name, tries, retries, worker, token, grant, popped_at, at = string.match(text or '', RUNNING)
  stages = NEXT[stages]
  if not stages then
    return nil
  end
  local held, of = options_of(text, more)
  if held then
    return seq, stages, more, name, tries, retries, worker, token, grant, popped_at, at, held, of
  end
end

-- The units for deleting a complete job that has nothing which its deletion must look at; nil for another one.
function plain_records.units_of_ended(text)
  local stages, more = string.match(text or '', COMPLETE)
  if not stages then
    return nil
  end
  local units = NEXT[stages] and plain_records.MOVING or plain_records.MOVING + 2
  if more == '0' then
    return units
  end
  local options_ = string.match(text, ENDED, -more)
  local held = options_ and plain_options.read(options_)
  return held and units + plain_options.count(options_) + (held == 'throttles' and 2 or 0)
end

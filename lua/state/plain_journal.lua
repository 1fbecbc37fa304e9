-- The journal of plain operations (ops/plain.lua): entries as state/journal.lua writes them.
--
-- The number of the last entry is known within a row of plain operations, and it is written with the records. So an entry
-- costs one command. Calls that bring their own moments read the number each time: for them no epoch tells whether another
-- server has recorded anything.

local plain_journal = {}

local OK = '*2\r\n$2\r\nOK'
local SHORT = 400 -- the most bytes of a text whose head is kept

plain_journal.ONE = OK .. '\r\n:1\r\n' -- the outcome of an operation that replies 1
plain_journal.COMPLETE = OK .. '\r\n$8\r\ncomplete\r\n'
plain_journal.COMPLETE_AND_NOTHING = OK .. '\r\n*2\r\n$8\r\ncomplete\r\n*0\r\n' -- of a completion that pops

local heads = {} -- by the bytes of a text: what stands before it, and ends what is before that
local known, row, last = false, 0, 0 -- the key of the number; in which row of operations it is known; the number

local function head(size)
  local text = heads[size]
  if not text then
    text = '\r\n$' .. store.text(size) .. '\r\n'
    heads[size] = size <= SHORT and text or nil
  end
  return text
end

-- Whether operations are recorded. If so, the number of the last entry is known afterwards.
function plain_journal.is_on(simulated)
  if not journal.is_on() then
    return false
  end
  local key = keys.journaled
  if simulated or known ~= key or row ~= store.row then
    last = tonumber(writes.fetch('GET', key) or 0) or writes.fail(key, 'it is no number')
    known, row = key, store.row
  end
  return true
end

-- ---- outcomes

function plain_journal.text(value)
  return OK .. head(#value) .. value .. '\r\n'
end

-- A list of texts as part of an outcome, and their bytes.
local function list_of(values)
  local parts, bytes = {'\r\n*', store.text(#values)}, 0
  for i = 1, #values do
    local value = values[i]
    parts[2 * i + 1], parts[2 * i + 2] = head(#value), value
    bytes = bytes + #value
  end
  return table.concat(parts), bytes
end

function plain_journal.texts(values)
  local text, bytes = list_of(values)
  return OK .. text .. '\r\n', bytes
end

-- A leased job as part of an outcome.
local function shown(jid, text)
  return '\r\n*3' .. head(#jid) .. jid .. '\r\n$7\r\nrunning' .. head(#text) .. text
end

function plain_journal.job(jid, text)
  return OK .. '\r\n*1' .. shown(jid, text) .. '\r\n'
end

-- The same for several jobs, with the keys and texts of their records.
function plain_journal.jobs(jids, written)
  local parts = {OK, '\r\n*', store.text(#jids)}
  for i = 1, #jids do
    parts[i + 3] = shown(jids[i], written[2 * i])
  end
  parts[#parts + 1] = '\r\n'
  return table.concat(parts)
end

-- The outcome of a completion that leases a job.
function plain_journal.complete_and_job(jid, text)
  return OK .. '\r\n*2\r\n$8\r\ncomplete\r\n*1' .. shown(jid, text) .. '\r\n'
end

-- The units of a leased job in an outcome.
function plain_journal.units(stages, more, text)
  local units = stages == '4' and 2 or 0
  return more == '0' and units or units + #plain_records.first_tags(text, more, catalogue.most)
end

-- ---- entries

-- The strings of a call from a place on, as text, and their bytes.
local function rest_of(args, from, to)
  local parts, count, bytes = {}, 0, 0
  for i = from, to do
    local value = args[i]
    parts[count + 1], parts[count + 2], count = head(#value), value, count + 2
    bytes = bytes + #value
  end
  return table.concat(parts), bytes
end

-- A call as text, and its bytes. Its strings begin at a place among the arguments with the moment and the request; there
-- are mostly two or four more. (One long concatenation costs half of a list of parts.)
local function call_of(moment, request, args, at, size)
  local one, two = args[at + 2], args[at + 3]
  local text, bytes = '\r\n', #moment + #request + #one + #two
  if size == 6 then
    local three, four = args[at + 4], args[at + 5]
    text = head(#three) .. three .. head(#four) .. four .. text
    bytes = bytes + #three + #four
  elseif size > 4 then
    local rest, more = rest_of(args, at + 4, at + size - 1)
    text, bytes = rest .. text, bytes + more
  end
  return '*' .. store.text(size) .. head(#moment) .. moment .. head(#request) .. request .. head(#one) .. one
    .. head(#two) .. two .. text, bytes
end

-- The sequence of an event as text, from its id.
function plain_journal.seq_of(id)
  return string.match(id, '^%d+')
end

-- Append an operation of `size` strings, the last event of which is `seq`, with its outcome, which is text and has these
-- bytes and jobs of so many units (state/journal.lua).
function plain_journal.enter(operation, moment, request, args, at, size, seq, outcome, bytes, units)
  last = last + 1
  local number, call, of_call = string.format('%d', last), call_of(moment, request, args, at, size)
  local words = {number .. '-' .. store.epoch, 'o', operation, 'e', seq, 'c', call, 'r', outcome, nil, nil}
  units = budget.of_entry(of_call + bytes, units)
  if units > 0 then
    words[10], words[11] = 'u', store.text(units)
  end
  if last % journal.TRIM == 0 then
    words = {'MAXLEN', '~', config.text('max-journal'), unpack(words)}
  end
  store.record(words, number, units >= journal.HEAVY)
end

-- The journal: every operation that may change something, with its call and its outcome
-- (qmodel/model/state/journal.py).
--
-- An entry is in the stream under its number and the epoch, `<number>-<epoch>`. Its fields: `o` the operation; `e` the sequence of the last
-- event after it; `c` the strings of the call: the moment, the request and the arguments; `r` the reply. The last two
-- are written in the protocol's own form (RESP2), for which every client has a reader. If the entry is heavy, `u` has
-- its units beside the one of each entry. The number of the last entry with many units is kept, so that a reader can read
-- many of those behind it with one command.

local journal = {}

journal.TRIM = 16 -- every 16th entry checks the number of entries
journal.HEAVY = 40 -- the units of an entry that is not read together with others
local CHUNK = 64 -- entries that are read with one command

-- Whether operations are recorded.
function journal.is_on()
  return store.config and config.get('journal') == 1
end

-- Append a value in the protocol's form: a text, a whole number, or a list. (Only reads reply with nothing.)
local function write(parts, value)
  local kind = type(value)
  if kind == 'string' then
    parts[#parts + 1] = '$' .. #value .. '\r\n' .. value .. '\r\n'
  elseif kind == 'number' then
    parts[#parts + 1] = ':' .. store.text(value) .. '\r\n'
  else
    parts[#parts + 1] = '*' .. #value .. '\r\n'
    for i = 1, #value do
      write(parts, value[i])
    end
  end
end

local function written(value)
  local parts = {}
  write(parts, value)
  return table.concat(parts)
end

-- The bytes of all texts in a list.
local function measure(values)
  local bytes = 0
  for i = 1, #values do
    local one = values[i]
    if type(one) == 'string' then
      bytes = bytes + #one
    elseif type(one) == 'table' then
      bytes = bytes + measure(one)
    end
  end
  return bytes
end

-- The jobs in the outcome of an operation, and all else in it.
local function jobs_of(operation, outcome)
  local shape, reply = catalogue.operations[operation], outcome[2]
  if outcome[1] ~= 'OK' then
    return {}, outcome
  elseif shape.jobs then
    return reply, {}
  elseif shape.follow then
    return reply[2], {reply[1]}
  end
  return {}, type(reply) == 'table' and reply or {}
end

-- The units of a call and its outcome, beside the unit of each entry.
local function weight(operation, args, outcome)
  local jobs, said = jobs_of(operation, outcome)
  local units = 0
  for i = 1, #jobs do
    units = units + budget.of_shown(jobs[i])
  end
  return budget.of_entry(measure(args) + measure(said), units)
end

-- Append an operation and its outcome. `args` are the moment, the request and the arguments.
function journal.record(operation, args, outcome)
  local number = writes.next_number(keys.journaled)
  local id = number .. '-' .. store.epoch
  local said = {'o', operation, 'e', store.text(store.last()), 'c', written(args), 'r', written(outcome)}
  local units = weight(operation, args, outcome)
  if units > 0 then
    said[9], said[10] = 'u', store.text(units)
  end
  if units >= journal.HEAVY then
    writes.put_off('SET', keys['journal-heavy'], store.text(number))
  end
  if number % journal.TRIM == 0 then
    writes.put_off('XADD', keys.journal, {'MAXLEN', '~', config.text('max-journal'), id, unpack(said)})
  else
    writes.put_off('XADD', keys.journal, {id, unpack(said)})
  end
end

-- Set how many entries are kept. Entries beyond that are deleted at once: they do not reappear when the limit is
-- raised.
function journal.keep(most)
  writes.put_off('XTRIM', keys.journal, 'MAXLEN', math.min(most, config.value('max-journal')))
end

-- The number of the last entry.
local function newest()
  return tonumber(writes.fetch('GET', keys.journaled) or 0)
end

-- The first entry that is kept, with its epoch as text; or the one after the last.
local function first_kept()
  local last = newest()
  local first = math.max(last - config.value('max-journal'), 0) + 1
  local found = writes.fetch('XRANGE', keys.journal, store.text(first) .. '-0', '+', 'COUNT', 1)[1]
  if not found then
    return last + 1, ''
  end
  local number, epoch = string.match(found[1], '^(%d+)-(%d+)$')
  return tonumber(number), epoch
end

-- Add an entry to a page, as it is in the stream, and its epoch, if the budget has room for it; give its number, or nil.
local function add(page, entry)
  local said = entry[2]
  if not budget.take(1 + (said[10] or 0), 0, page[1]) then
    return nil
  end
  local at, epoch = string.match(entry[1], '^(%d+)-(%d+)$')
  page[#page + 1] = {at, said[4], said[2], said[6], said[8], epoch}
  return tonumber(at)
end

-- The entries after a number, oldest first: as many as the budget has room for. Up to the last heavy one they are read one
-- by one: a command for many could read many megabytes that the page has no room for.
function journal.after(number, count)
  local at = math.max(number, newest() - config.value('max-journal'))
  local heavy = tonumber(writes.fetch('GET', keys['journal-heavy']) or 0)
  local page = {}
  while #page < count do
    local most = at < heavy and 1 or math.min(CHUNK, count - #page)
    local found = writes.fetch('XRANGE', keys.journal, store.text(at + 1) .. '-0', '+', 'COUNT', most)
    for i = 1, #found do
      local added = add(page, found[i])
      if not added then
        return page
      end
      at = added
    end
    if #found < most then
      return page
    end
  end
  return page
end

-- Refuse a reader whose last entry is not part of this history, as `epochs.check` does for events. If that entry is no
-- longer kept, the next one that is must be of the reader's epoch: nothing tells which epoch was before it.
function journal.check(number, epoch)
  if number == 0 then
    return
  end
  local same
  local text, last = store.text(epoch), newest()
  local first, first_epoch = first_kept()
  if number > last or first > last then
    same = store.epoch == text
  elseif number >= first then
    same = epochs.of(keys.journal, number) == text
  else
    same = first_epoch == text
  end
  if not same then
    local common = epochs.common(number, epoch, first - 1, last, keys.journal)
    refusals.refuse('FORKED', store.text(number), text, store.epoch, store.text(common))
  end
end

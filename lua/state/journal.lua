-- The journal: every operation that may change something, with its call and its outcome
-- (qmodel/model/state/journal.py).
--
-- An entry is in the stream under its number and the epoch, `<number>-<epoch>`. Its fields: `o` the operation; `e` the sequence of the last
-- event after it; `c` the strings of the call: the moment, the request and the arguments; `r` the reply. The last two
-- are written in the protocol's own form (RESP2), for which every client has a reader.

local journal = {}

local TRIM = 16 -- every 16th entry checks the number of entries

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

-- Append an operation and its outcome. `args` are the moment, the request and the arguments.
function journal.record(operation, args, outcome)
  local number = writes.next_number(keys.journaled)
  local id = number .. '-' .. store.epoch
  local said = {'o', operation, 'e', store.text(store.last()), 'c', written(args), 'r', written(outcome)}
  if number % TRIM == 0 then
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

-- The entries after a number, oldest first; each as it is in the stream, and its epoch.
function journal.after(number, count)
  local last = tonumber(writes.fetch('GET', keys.journaled) or 0)
  local first = math.max(number, last - config.value('max-journal')) + 1
  local page = {}
  for i, entry in ipairs(writes.fetch('XRANGE', keys.journal, store.text(first) .. '-0', '+', 'COUNT', count)) do
    local said = entry[2]
    local at, epoch = string.match(entry[1], '^(%d+)-(%d+)$')
    page[i] = {at, said[4], said[2], said[6], said[8], epoch}
  end
  return page
end

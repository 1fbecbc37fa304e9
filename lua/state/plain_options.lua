-- The options of plain jobs (ops/plain.lua): as a put gives them, and as they stand in a record.
--
-- A plain job may hold one thing: a deduplication key, a place at one throttle, or the slot of a sub-request. Its other
-- options are such that a claim and a completion do nothing for them, but that its lease may have a length of its own, and
-- that it leaves its turn.

local plain_options = {}

plain_options.OF_REQUEST = '\255request=' -- what stands between the slot and the request in the options of a sub-request

local BETWEEN = '\255' -- what stands between tags, and between options, in a record
local MOST_TAGS = 8 -- the most tags of a plain put
local PAIR = '([^=\255]+)=([^\255]*)'
local ALONE = '^([^=]+)=([^ ]*)$' -- one option, the value of which has no blank
local FAIR = '^fair_key=[^\255]*\255turn=(%d+)$' -- a fair key and a turn, and nothing else
local SUB_REQUEST = '^line=%d+\255request=([^\255]*)$'

local HELD = {throttles = true, unique = true} -- what a job may hold; both are ids

-- The options of a plain put, as records order them.
local OF_PUT = {
  'dead_queue', 'fair_key', 'fair_weight', 'keep_failed_ms', 'lease_ms', 'lifo', 'max_lapses', 'retry_delay_max_ms',
  'retry_delay_ms', 'throttles', 'timeout_ms', 'turn', 'unique',
}

-- The optional arguments of a plain put but its tags: these two, and its options but the turn, which the queue gives.
local FIELDS = {priority = true, retries = true}

-- Those in a record for which a plain claim and a completion do nothing.
local INERT = {lapses = true}
for i = 1, #OF_PUT do
  local name = OF_PUT[i]
  INERT[name] = not HELD[name]
  FIELDS[name] = name ~= 'turn'
end

-- ---- in a put

-- Whether a value of an argument needs no other look. (Fair keys may be many: they are not kept as names.)
local function accepts(name, value)
  local kind = catalogue.operations.put.arguments[name]
  if HELD[name] then
    return not (name == 'throttles' and throttles.queue_of(value)) and arguments.is_id(value, 128)
  elseif kind.kind == 'name' then
    return #value <= kind.most and string.find(value, '^%C+$') ~= nil
      and (not string.find(value, '[\128-\255]') or arguments.is_utf8(value))
  end
  return arguments.accept(kind, value) ~= nil
end

-- What a put says in its pairs between two places, by name, with its tags as a list, the number of its options and the last
-- of these; nil, if it is not plain.
function plain_options.asked(args, from, to)
  local said, found, met, names = {count = 0}, {}, {}, arguments.names
  for at = from, to, 2 do
    local name, value = args[at], at < to and args[at + 1]
    if name == 'tags' and names[value] and not met[value] and #found < MOST_TAGS then
      met[value] = true
      found[#found + 1] = value
    elseif not value or not FIELDS[name] or said[name] or not accepts(name, value) then
      return nil
    else
      said[name] = value
      if name ~= 'priority' and name ~= 'retries' then
        said.count, said.last = said.count + 1, name
      end
    end
  end
  if said.throttles and said.unique then
    return nil
  end
  said.tags = found
  return said
end

-- What one of several puts says, likewise; nil also if the job would hold anything or have tags.
function plain_options.asked_simply(args, from, to)
  local said = plain_options.asked(args, from, to)
  if said and not (said.tags[1] or said.throttles or said.unique) then
    return said
  end
end

-- The options of a new job as they stand in its record.
function plain_options.text(said)
  local last = said.last
  if said.count == 0 then
    return ''
  elseif said.count == 1 then
    return last == 'lifo' and said.lifo == '0' and '' or last .. '=' .. said[last]
  end
  local parts, count = {}, 0
  for i = 1, #OF_PUT do
    local name = OF_PUT[i]
    local value = said[name]
    if value and not (name == 'lifo' and value == '0') then
      count = count + 1
      parts[count] = name .. '=' .. value
    end
  end
  return table.concat(parts, BETWEEN)
end

-- ---- in a record

-- What options say: what the job holds and its value, '' if it holds nothing; its turn, the length of its lease and the
-- greatest one, if it has them. Nil, if it is not plain.
function plain_options.read(text)
  if not string.find(text, BETWEEN, 1, true) then
    local alone, value_ = string.match(text, ALONE)
    if HELD[alone] then
      return alone, value_
    end
  end
  local held, of, turn, lease_ms, longest = '', '', string.match(text, FAIR), nil, nil
  if turn then
    return held, of, turn
  end
  for name, value in string.gmatch(text, PAIR) do
    if INERT[name] then
      lease_ms = name == 'lease_ms' and tonumber(value) or lease_ms
      longest = name == 'timeout_ms' and tonumber(value) or longest
      turn = name == 'turn' and value or turn
    elseif HELD[name] and held == '' and not string.find(value, ' ', 1, true) then
      held, of = name, value
    else
      return nil
    end
  end
  return held, of, turn, lease_ms, longest
end

-- The request of a sub-request that has a slot and no other option, or nil.
function plain_options.request_of(text)
  return string.match(text, SUB_REQUEST)
end

-- Options without this turn.
function plain_options.without_turn(text, turn)
  local at = string.find(text, '\255turn=', 1, true)
  if at then
    return string.sub(text, 1, at - 1) .. string.sub(text, at + 6 + #turn)
  end
  return string.sub(text, 7 + #turn)
end

-- How many options there are.
function plain_options.count(text)
  local _, between = string.gsub(text, BETWEEN, '')
  return text == '' and 0 or between + 1
end

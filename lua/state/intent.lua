-- The intent: commands of a step that failed after its first write, kept until the next call that writes has done them.
--
-- They stand in `<p>intent`, for each command the number of its words, then each word after its length; and the counters
-- begin with `!`. So a call finds out with what it reads anyway.

local intent = {}

-- Try a command; give the error, if it fails.
function intent.try(words)
  local reply = redis.pcall(unpack(words))
  return type(reply) == 'table' and reply.err or nil
end

-- Append the events of an entry under the first free sequences, because the stream is ahead of the counters; give the
-- error, if it fails.
local function append_again(words)
  local last = redis.pcall('XREVRANGE', keys.events, '+', '-', 'COUNT', 1)
  local highest = last[1] and tonumber(string.match(last[1][1], '^%d+')) or store.seq
  local _, breaks = string.gsub(words[#words], '\n', '')
  local seq = highest + 1 + breaks
  store.seq = math.max(store.seq, seq)
  return intent.try({'XADD', keys.events, store.text(seq) .. '-' .. store.epoch, 'e', words[#words]})
end

-- Append an entry of the journal under the first free number, because another library has recorded a step that is no event, or
-- the number was lost; give the error, if it fails. It may be a heavy one.
local function record_again(words)
  local at = words[3] == 'MAXLEN' and 6 or 3
  local last = redis.pcall('XREVRANGE', keys.journal, '+', '-', 'COUNT', 1)[1]
  local number = store.text(string.match(last and last[1] or '0', '^%d+') + 1)
  words[at] = number .. string.match(words[at], '%-%d+$')
  return intent.try(words) or intent.try({'MSET', keys.journaled, number, keys['journal-heavy'], number})
end

-- Commands as text: for each the number of its words, then each word after its length.
local function packed(commands)
  local parts = {}
  for _, words in ipairs(commands) do
    parts[#parts + 1] = '*' .. #words .. '\n'
    for _, word in ipairs(words) do
      word = type(word) == 'number' and store.text(word) or word
      parts[#parts + 1] = #word .. '\n' .. word
    end
  end
  return table.concat(parts)
end

local function unpacked(text)
  local commands, at = {}, 1
  while at <= #text do
    local many, behind = string.match(text, '^%*(%d+)\n()', at)
    local words = {}
    for i = 1, tonumber(many) do
      local long, from = string.match(text, '^(%d+)\n()', behind)
      behind = from + tonumber(long)
      words[i] = string.sub(text, from, behind - 1)
    end
    commands[#commands + 1], at = words, behind
  end
  return commands
end

-- Keep commands that failed, after those that are kept already; say whether that succeeded.
function intent.keep(commands, counters)
  local kept = store.pending and redis.call('GET', keys.intent) or ''
  store.unknown()
  return intent.try({'MSET', keys.intent, kept .. packed(commands), keys.counters, '!' .. counters}) == nil
end

-- Try commands in their order; give those that failed, and all that follow on the same key.
function intent.try_all(commands)
  local left, stuck = {}, {}
  for _, words in ipairs(commands) do
    local keys_ = words[1] == 'DEL' and words or {words[2]}
    local fault
    for _, key in ipairs(keys_) do
      fault = fault or stuck[key]
    end
    fault = fault or intent.try(words)
    if fault and words[1] == 'XADD' and string.find(fault, 'equal or smaller', 1, true) then
      local again = words[2] == keys.events and append_again or record_again
      fault = again(words)
    end
    if fault then
      left[#left + 1] = words
      for _, key in ipairs(keys_) do
        stuck[key] = fault
      end
    end
  end
  return left
end

-- The commands that are kept.
function intent.kept()
  return unpacked(redis.call('GET', keys.intent) or '')
end

-- Do what was kept of earlier steps. A call that only reads does nothing; it may not read their keys.
function intent.mend(reads)
  local text = redis.call('GET', keys.intent) or ''
  local commands, counters = unpacked(text), string.gsub(store.counters, '^!', '')
  local left = commands
  if not reads then
    redis.call('MSET', keys.intent, text)
    left = intent.try_all(commands)
    counters = (left[1] and '!' or '') .. counters
    redis.call('MSET', keys.intent, packed(left), keys.counters, counters)
    if not left[1] then
      redis.pcall('DEL', keys.intent)
    end
  end
  return left
end

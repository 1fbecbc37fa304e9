-- Epochs: what tells two histories of a namespace apart (qmodel/model/state/epochs.py).
--
-- A server begins an epoch by itself when it cannot know that it has the end of the log. `mine` holds, for each prefix
-- and epoch, the last sequence that this Lua state wrote in that epoch. If the stored sequence is another one, somebody
-- else has written it: another server (this one was a replica, or is a new process), or a restored file. Only writes
-- set it, and never reads: a replica runs reads too, and keeps its Lua state when it is promoted. The prefix may be the
-- same in several databases; their epochs differ, because each new one is above `newest`.
--
-- Calls that bring their own moment begin no epoch by themselves, so that simulated histories stay the same everywhere.
--
-- A script (EVAL, for servers without functions) keeps nothing from call to call. There the stored epoch must have been
-- begun by this process of the server: its last six digits tell. So a script does not notice that an older state was
-- restored into the running server, and FLUSHALL in the very second in which an epoch began repeats that epoch.

local epochs = {}

local EPOCHS = 1000 -- the most epochs that are remembered for a prefix
local PREFIXES = 1000 -- the most prefixes
local DIGITS = 1000000 -- an epoch is a second times this number, and digits of the server

local mine, count, floor = {}, 0, 0 -- prefix -> what it has; how many; no forgotten prefix has begun a later epoch
local keeps = true -- whether this Lua state lives longer than a call
local padded_for, padded -- an epoch, and its digits before a sequence, by the number of the sequence's digits

-- Exchange what is kept of one namespace for that of another one (state/keys.lua).
function epochs.keep(namespace)
  namespace.padded_for, namespace.padded = padded_for, padded
end

function epochs.recall(namespace)
  padded_for, padded = namespace.padded_for, namespace.padded
end

-- Say that this is a script: its Lua state ends with the call.
function epochs.forget()
  keeps = false
end

-- The token of a claim that is event `seq` of the current epoch.
function epochs.token(seq)
  return epochs.token_of(store.text(seq))
end

-- The same for a sequence that is text.
function epochs.token_of(text)
  if store.epoch == '0' then
    return text
  end
  return epochs.before(#text) .. text
end

-- What stands in a token before a sequence of so many digits.
function epochs.before(digits)
  if padded_for ~= store.epoch then
    padded_for, padded = store.epoch, {}
  end
  local before = padded[digits]
  if not before then
    before = store.epoch == '0' and '' or store.epoch .. string.rep('0', 14 - digits)
    padded[digits] = before
  end
  return before
end

-- The sequence of the claim that a token is of, as text: in one history, it orders the claims.
function epochs.claim(token)
  return #token < 15 and token or string.format('%d', tonumber(string.sub(token, -14)))
end

-- Begin an epoch; the event that tells of it already belongs to it.
function epochs.begin(now, epoch)
  local previous = store.epoch
  store.set_epoch(store.text(epoch))
  store.emit(now, 'epoch_begun', store.epoch, previous)
end

-- The last event that is no longer kept.
local function gone()
  return store.first_kept() - 1
end

-- The entry of a stream that has a number, which has no gaps, of events or of the journal; and for an event, what it says.
-- Nil if it is not kept.
local function entry(stream, number)
  local found = writes.fetch('XRANGE', stream, store.text(number), '+', 'COUNT', 1)[1]
  if not found then
    return nil
  end
  local said, at = found[2][2], tonumber(string.match(found[1], '^%d+'))
  if stream ~= keys.events or not string.find(said, '\n', 1, true) then
    return at == number and found or nil, said
  end
  local _, breaks = string.gsub(said, '\n', '')
  at = at - breaks
  for line in string.gmatch(said, '[^\n]+') do
    if at == number then
      return found, line
    end
    at = at + 1
  end
end

-- The epoch of an entry, as text.
local function epoch_in(found)
  return found and string.match(found[1], '%d+$') or ''
end

-- The epoch of a kept entry of a stream, as text.
function epochs.of(stream, number)
  return epoch_in(entry(stream, number))
end

-- The newest entry that both can share, as far as is known: no epoch after that of the reader began before it. `first`
-- is the last entry of the stream that is no longer kept, and `newest` the last one.
function epochs.common(number, epoch, first, newest, stream)
  local low, high = first, math.min(number, newest)
  while low < high do -- the last entry of an epoch that is not later, or the one before the kept
    local middle = math.floor((low + high + 1) / 2)
    if (tonumber(epochs.of(stream, middle)) or 0) <= epoch then
      low = middle
    else
      high = middle - 1
    end
  end
  if low == first then
    return math.min(number, first)
  end
  return low == number and low - 1 or low
end

-- Refuse a reader whose last event is not part of this history. If that event is no longer kept, the next one that is
-- must be of the reader's epoch, or begin the one after it. A reader that is ahead, in the current epoch, is no fork: a
-- replica that lags looks like this.
function epochs.check(after, epoch)
  if after == 0 then
    return
  end
  local same
  local text, first = store.text(epoch), gone() + 1
  if after > store.last() or first > store.last() then
    same = store.epoch == text
  elseif after >= first then
    same = epochs.of(keys.events, after) == text
  else
    local found, said = entry(keys.events, first)
    local what, previous = string.match(said or '', '^%d+\t([%l_]+)\t%d+\t(%d+)$')
    same = epoch_in(found) == text or (what == 'epoch_begun' and previous == text)
  end
  if not same then
    local common = epochs.common(after, epoch, first - 1, store.last(), keys.events)
    refusals.refuse('FORKED', store.text(after), text, store.epoch, store.text(common))
  end
end

-- ---- beginning one by oneself

-- Six digits that belong to this process of the server. A user who may not run INFO gets those of the clock's
-- microsecond, and false: they are others the next time. (Not math.random: every server begins it alike.)
local function digits()
  local said = redis.pcall('INFO', 'server')
  local id = type(said) == 'string' and string.match(said, 'run_id:(%x+)')
  if id then
    return tonumber(string.sub(id, 1, 10), 16) % DIGITS, true
  end
  return tonumber(redis.call('TIME')[2]), false
end

-- Whether the last step of this namespace may have been made by another server, or be lost.
function epochs.is_foreign()
  if keeps then
    local own = mine[keys.counters]
    return not own or own.last[store.epoch] ~= store.seq
  elseif store.epoch == '0' then
    return true
  end
  local own, known = digits()
  return known and tonumber(store.epoch) % DIGITS ~= own
end

local function own_of(namespace)
  local own = mine[namespace]
  if own and own.count < EPOCHS then
    return own
  elseif own then
    own.last, own.count = {}, 0
    return own
  end
  if count == PREFIXES then
    for _, one in pairs(mine) do
      floor = math.max(floor, one.newest)
    end
    mine, count = {}, 0
  end
  own = {last = {}, count = 0, newest = floor}
  mine[namespace], count = own, count + 1
  return own
end

-- The epoch to begin by oneself: above the current one, and above all that this Lua state has begun.
function epochs.next_(now)
  local own = own_of(keys.counters)
  local last = math.max(tonumber(store.epoch), own.newest)
  local epoch = math.floor(now / 1000) * DIGITS + digits()
  if epoch <= last then
    epoch = epoch % DIGITS + (math.floor(last / DIGITS) + 1) * DIGITS
  end
  return epoch
end

-- Remember what this step has written; give the sequences of all epochs that are remembered, or false if this one is not. A
-- call that brought its own moment goes on with what is remembered, and does not begin it.
function epochs.remember(real)
  local own, epoch = mine[keys.counters], store.epoch
  if own and own.last[epoch] == store.began then
    own.last[epoch] = store.seq
    return own.last
  elseif real and keeps and store.seq ~= store.began then
    own = own_of(keys.counters)
    own.last[epoch], own.count = store.seq, own.count + 1
    own.newest = math.max(own.newest, tonumber(epoch))
    return own.last
  end
  return false
end

-- Messages: recent publications, kept for later subscribers. The rules are described in qmodel/model/state/messages.py.
--
-- A message is a member of one sorted set, with its number as the score, and a text of its own: when it is due, its
-- subject, and its data, with a line end after each of the first two. The text is read only when it is needed.

local messages = {}

local function list()
  return keys.messages
end

local function of(places)
  local found = {}
  for i = 1, #places, 2 do
    local seq = tonumber(places[i + 1])
    found[#found + 1] = {seq = seq, at = tonumber(string.sub(places[i], 1, 14))}
  end
  return found
end

-- The message at an index, counted from 0, or from the end if negative. It may not exist.
local function at_place(place)
  return of(writes.fetch('ZRANGE', list(), place, place, 'WITHSCORES'))[1]
end

local function member(message)
  return keys.member(message.at, store.text(message.seq))
end

-- Store a message.
function messages.add(now, seq, subject, data, due_at)
  local last = at_place(-1)
  local message = {seq = seq, at = math.max(now, last and last.at or 0), due_at = due_at, subject = subject, data = data}
  store.add(list(), seq, member(message))
  store.write(keys.message(store.text(seq)), store.text(due_at) .. '\n' .. subject .. '\n' .. data)
  return message
end

-- The messages after a number, oldest first, without their texts.
function messages.after(seq, most)
  return of(writes.fetch('ZRANGEBYSCORE', list(), seq + 1, '+inf', 'WITHSCORES', 'LIMIT', 0, most))
end

-- The oldest messages, without their texts.
function messages.oldest(most)
  return of(writes.fetch('ZRANGE', list(), 0, most - 1, 'WITHSCORES'))
end

-- How many messages there are after a number.
function messages.count_after(seq)
  return writes.fetch('ZCOUNT', list(), seq + 1, '+inf')
end

-- The number of the last message before a given time, or 0.
function messages.before(moment)
  local low, high = 0, writes.fetch('ZCARD', list())
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at_place(middle).at < moment then
      low = middle + 1
    else
      high = middle
    end
  end
  return low > 0 and at_place(low - 1).seq or 0
end

-- The oldest messages that are past messages-history or beyond messages-history-count, without their texts.
function messages.past_keeping(now, most)
  local surplus = writes.fetch('ZCARD', list()) - config.value('messages-history-count')
  local last = now - config.value('messages-history')
  local found = {}
  for i, message in ipairs(messages.oldest(most)) do
    if i > surplus and message.at > last then
      break
    end
    found[i] = message
  end
  return found
end

-- Read the texts of messages.
function messages.load(found)
  for _, message in ipairs(found) do
    local text = store.read(keys.message(store.text(message.seq)))
    local due_at, subject, at = string.match(text, '^(%d+)\n(%C+)\n()')
    message.due_at, message.subject, message.data = tonumber(due_at), subject, string.sub(text, at)
  end
  return found
end

-- Delete a message.
function messages.remove(message)
  store.remove(list(), member(message))
  store.write(keys.message(store.text(message.seq)), false)
end

-- Everything about a message.
function messages.view(message)
  return {message.seq, message.at, message.due_at, message.subject, message.data}
end

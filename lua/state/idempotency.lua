-- Idempotency: the replies to recent requests, for operations that have no other way to recognise a repeated one. A
-- reply is one number, one text, or a list; it is kept as text, with a line end after each part. A list in a list has
-- tabs in place of line ends, and holds ids only. The first reply is filled up with blanks, so that the server does not
-- scan the others (state/keys.lua).

local idempotency = {}

local KEPT = 1000
local LONG = 65 -- the bytes of a value that is not kept in one piece with others

local function pack(reply, ends)
  if type(reply) ~= 'table' then
    return type(reply) == 'number' and '#' .. reply or '$' .. reply
  end
  local parts = {}
  for i, part in ipairs(reply) do
    parts[i] = pack(part, '\t') .. ends
  end
  return '*' .. table.concat(parts)
end

local function unpack_(text, ends)
  local kind, rest = string.sub(text, 1, 1), string.sub(text, 2)
  if kind == '#' then
    return tonumber(rest)
  elseif kind == '$' then
    return rest
  end
  local reply = {}
  for part in string.gmatch(rest, ends == '\n' and '([^\n]*)\n' or '([^\t]*)\t') do
    reply[#reply + 1] = unpack_(part, '\t')
  end
  return reply
end

-- The remembered reply to a request, or nil.
function idempotency.recall(request)
  local text = writes.fetch('HGET', keys.requests, request)
  if text and string.sub(text, 1, 1) == '$' then -- an id or a word, which ends in no blank
    return string.match(text, '^%$(.-) *$')
  elseif text then
    return unpack_(text, '\n')
  end
end

-- Remember the reply to a request, and forget the oldest beyond 1000: at the end of the step, which may have many.
function idempotency.remember(request, reply)
  local replies = store.replies or {}
  store.replies = replies
  replies[#replies + 1] = request
  replies[#replies + 1] = pack(reply, '\n')
end

local known, row, last, held -- an order of requests, and in which row of operations it has this last score and these many

-- Know the last score of the order, and how many requests it has.
local function know(order)
  if known ~= order or row ~= store.row then
    local found = writes.fetch('ZRANGE', order, -1, -1, 'WITHSCORES')
    known, row, last, held = order, store.row, tonumber(found[2] or 0), writes.fetch('ZCARD', order)
  end
end

-- Write the replies of the step.
function idempotency.flush()
  local order, replies, places = keys['requests-order'], store.replies, {}
  know(order)
  for i = 1, #replies, 2 do
    last = last + 1
    places[i], places[i + 1] = store.text(last), replies[i]
  end
  if held == 0 then
    replies[2] = replies[2] .. string.rep(' ', LONG - #replies[2])
  end
  local surplus = held + #replies / 2 - KEPT
  held = math.min(held + #replies / 2, KEPT)
  if surplus > 0 then
    local popped, gone = writes.pop_first(order, store.text(surplus)), {}
    for i = 1, #popped, 2 do
      gone[#gone + 1] = popped[i]
    end
    writes.put_off_many('HDEL', keys.requests, gone, #gone)
  end
  writes.put_off_many('HSET', keys.requests, replies, #replies)
  writes.put_off_many('ZADD', order, places, #places)
  store.replies = false
end

-- ---- a plain operation, which has one request (ops/plain.lua)

local gone = false -- the request that is forgotten for the one of a plain operation

-- Whether a request is new, and the order is not longer than it may be.
function idempotency.is_new(request)
  if idempotency.recall(request) ~= nil then
    return false
  end
  know(keys['requests-order'])
  return held <= KEPT
end

-- Take the oldest request off the order, if the new one needs its place.
function idempotency.make_room()
  gone = held == KEPT and writes.pop_first(keys['requests-order'])[1]
end

-- Remember the reply to the new request, after the texts were written.
function idempotency.enter(request, reply)
  local text = pack(reply, '\n')
  if held == 0 then
    text = text .. string.rep(' ', LONG - #text)
  end
  last, held = last + 1, math.min(held + 1, KEPT)
  if gone then
    writes.last('HDEL', keys.requests, gone)
  end
  writes.last('HSET', keys.requests, request, text)
  writes.last('ZADD', keys['requests-order'], store.text(last), request)
end

-- Idempotency: the replies to recent requests, for operations that have no other way to recognise a repeated one. A
-- reply is one number, one text, or a list of either; it is kept as text, with a line end after each part.

local idempotency = {}

local KEPT = 1000

local function pack(reply)
  if type(reply) ~= 'table' then
    return type(reply) == 'number' and '#' .. reply or '$' .. reply
  end
  local parts = {}
  for i, part in ipairs(reply) do
    parts[i] = pack(part) .. '\n'
  end
  return '*' .. table.concat(parts)
end

local function unpack_(text)
  local kind, rest = string.sub(text, 1, 1), string.sub(text, 2)
  if kind == '#' then
    return tonumber(rest)
  elseif kind == '$' then
    return rest
  end
  local reply = {}
  for part in string.gmatch(rest, '([^\n]*)\n') do
    reply[#reply + 1] = unpack_(part)
  end
  return reply
end

-- The remembered reply to a request, or nil.
function idempotency.recall(request)
  local text = writes.fetch('HGET', keys.requests, request)
  if text then
    return unpack_(text)
  end
end

-- Remember the reply to a request, and forget the oldest beyond 1000: at the end of the step, which may have many.
function idempotency.remember(request, reply)
  local replies = store.replies or {}
  store.replies = replies
  replies[#replies + 1] = request
  replies[#replies + 1] = pack(reply)
end

-- Write the replies of the step.
function idempotency.flush()
  local order, replies, places = keys['requests-order'], store.replies, {}
  local last = writes.fetch('ZRANGE', order, -1, -1, 'WITHSCORES')
  for i = 1, #replies, 2 do
    places[i], places[i + 1] = store.text((last[2] or 0) + (i + 1) / 2), replies[i]
  end
  local surplus = writes.fetch('ZCARD', order) + #replies / 2 - KEPT
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

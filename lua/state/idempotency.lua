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

-- Remember the reply to a request, and forget the oldest beyond 1000.
function idempotency.remember(request, reply)
  local order = keys['requests-order']
  local last = writes.fetch('ZRANGE', order, -1, -1, 'WITHSCORES')
  if writes.fetch('ZCARD', order) >= KEPT then
    writes.put_off('HDEL', keys.requests, writes.pop_first(order)[1])
  end
  writes.put_off('HSET', keys.requests, request, pack(reply))
  writes.put_off('ZADD', order, store.text((last[2] or 0) + 1), request)
end

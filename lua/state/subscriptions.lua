-- Subscriptions: which messages are wanted, and the jobs that they become. The rules are described in
-- qmodel/model/state/subscriptions.py.
--
-- All of them are in one hash, because they are read together. Each is a text of fields separated by tabs; the parts of
-- a list are separated by a byte that no text in UTF-8 contains. The position of an up-to-date subscription is empty.

local subscriptions = {}

subscriptions.MOST = 100
subscriptions.PATTERNS_MOST = 10

local OPTIONS = { -- by name
  'dead_queue', 'fair_key', 'fair_weight', 'lease_ms', 'lifo', 'ordered', 'timeout_ms', 'ttl_ms',
}

local BETWEEN = '\255'
local FIELDS = '^(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)$'

local function parts(text)
  local list = {}
  for part in string.gmatch(text, '[^\255]+') do
    list[#list + 1] = part
  end
  return list
end

local function decode(name, text)
  local seq, position, queue, klass, priority, delay_ms, retries, tags_, options_, patterns = string.match(text, FIELDS)
  return {
    name = name, seq = tonumber(seq), position = tonumber(position), queue = queue, klass = klass,
    priority = tonumber(priority), delay_ms = tonumber(delay_ms), retries = tonumber(retries), tags = parts(tags_),
    options = options_, patterns = parts(patterns),
  }
end

-- A subscription, or nil if it does not exist.
function subscriptions.get(name)
  local text = writes.fetch('HGET', keys.subscriptions, name)
  return text and decode(name, text)
end

-- A subscription, or refuse.
function subscriptions.find(name)
  return subscriptions.get(name) or refusals.refuse('SUBSCRIPTION_NOT_FOUND', name)
end

local function number_of(subscription)
  return subscription.seq
end

local function in_order(found)
  table.sort(found, function(a, b)
    return number_of(a) < number_of(b)
  end)
  return found
end

-- All subscriptions, oldest first.
function subscriptions.listed()
  local all = writes.fetch('HGETALL', keys.subscriptions)
  local found = {}
  for i = 1, #all, 2 do
    found[#found + 1] = decode(all[i], all[i + 1])
  end
  return in_order(found)
end

local segments_of = {} -- a cache: text of patterns -> their segments

-- The subscriptions that are up to date and match a subject, oldest first. Of the others only the patterns are decoded.
function subscriptions.wanting(subject)
  local segments, found, compared = subjects.split(subject), {}, {}
  local all = writes.fetch('HGETALL', keys.subscriptions)
  for i = 1, #all, 2 do
    local patterns = string.match(all[i + 1], '^%d+\t\t.*\t(.*)$')
    if patterns then
      local known = segments_of[patterns] or subjects.split_all(parts(patterns))
      compared[patterns] = known
      if subjects.matches(known, segments) then
        found[#found + 1] = decode(all[i], all[i + 1])
      end
    end
  end
  segments_of = compared
  return in_order(found)
end

-- Drop repeated patterns.
function subscriptions.distinct(list)
  local seen, order = {}, {}
  for _, one in ipairs(list) do
    if not seen[one] then
      seen[one] = true
      order[#order + 1] = one
    end
  end
  return order
end

-- A new subscription.
function subscriptions.create(name)
  return {name = name}
end

-- Set the patterns of a subscription, and the properties of its jobs.
function subscriptions.assign(subscription, op)
  subscription.patterns = subscriptions.distinct(op.patterns)
  subscription.queue, subscription.klass = op.queue, op.klass
  subscription.priority, subscription.delay_ms, subscription.retries = op.priority, op.delay_ms, op.retries
  subscription.tags = subscriptions.distinct(op.tags)
  local given = {}
  for _, name in ipairs(OPTIONS) do
    local value = op[name]
    if value then
      given[#given + 1] = name .. '=' .. (value == true and '1' or type(value) == 'number' and store.text(value) or value)
    end
  end
  subscription.options = table.concat(given, BETWEEN)
end

-- Store a subscription. One that has received all messages becomes up to date.
function subscriptions.save(subscription)
  if subscription.position and messages.count_after(subscription.position) == 0 then
    subscription.position = nil
  end
  local position = subscription.position and store.text(subscription.position) or ''
  store.set_field(keys.subscriptions, subscription.name, table.concat({
    store.text(subscription.seq), position, subscription.queue, subscription.klass, store.text(subscription.priority),
    store.text(subscription.delay_ms), store.text(subscription.retries), table.concat(subscription.tags, BETWEEN),
    subscription.options, table.concat(subscription.patterns, BETWEEN),
  }, '\t'))
end

-- Delete a subscription.
function subscriptions.remove(subscription)
  writes.put_off('HDEL', keys.subscriptions, subscription.name)
end

-- The id of the job that a message becomes.
function subscriptions.jid_of(subscription, message)
  return subscription.name .. ':' .. store.text(message.seq)
end

-- The put that a message becomes. The rest of the message's delay, and of the subscription's, counts from now.
function subscriptions.put_of(now, subscription, message, jid)
  local op = {
    named = true, queue = subscription.queue, jid = jid, klass = subscription.klass, data = message.data,
    priority = subscription.priority, delay_ms = math.max(message.due_at + subscription.delay_ms - now, 0),
    retries = subscription.retries, tags = subscription.tags,
  }
  for name, value in string.gmatch(subscription.options, '([^=\255]+)=([^\255]*)') do
    op[name] = value
  end
  return op
end

-- Everything about a subscription.
function subscriptions.view(subscription)
  local position, given = subscription.position, {}
  for name, value in string.gmatch(subscription.options, '([^=\255]+)=([^\255]*)') do
    given[#given + 1] = {name, value}
  end
  return {
    subscription.name, subscription.patterns, subscription.queue, subscription.klass, subscription.priority,
    subscription.retries, subscription.delay_ms, subscription.tags, given,
    position and messages.count_after(position) or 0,
  }
end

-- Messages and subscriptions. A message becomes one job for each subscription that matches it. The rules, and the
-- bounds of a step, are described in qmodel/model/ops/publish.py.

local publish = {}

local SWEEP = 10

-- Create the jobs of messages, each with its subscription. A job is not created again if a subscription of the same
-- name has already received the message.
local function deliver(now, given)
  local jids = {}
  for i, one in ipairs(given) do
    jids[i] = subscriptions.jid_of(one[1], one[2])
  end
  records.prefetch(jids)
  for i, one in ipairs(given) do
    local subscription, message, jid = one[1], one[2], jids[i]
    if jobs.get(jid) then
      store.emit(now, 'passed_over', subscription.name, jid)
    else
      local job = put.put_made(now, subscriptions.put_of(now, subscription, message, jid))
      options.set(job, 'subject', message.subject)
    end
  end
end

-- Deliver those of the next messages that match a subscription that is behind; give how many are left.
local function hand_on(now, subscription, found)
  local given, patterns = {}, subjects.split_all(subscription.patterns)
  for _, message in ipairs(messages.load(found)) do
    if subjects.matches(patterns, subjects.split(message.subject)) then
      given[#given + 1] = {subscription, message}
    end
  end
  deliver(now, given)
  local last = found[#found].seq
  local left = messages.count_after(last)
  store.emit(now, 'caught_up', subscription.name, last, left)
  subscription.position = last
  subscriptions.save(subscription)
  return left
end

-- The subscriptions that have not received all messages.
local function those_behind()
  local behind = {}
  for _, subscription in ipairs(subscriptions.listed()) do
    if subscription.position then
      behind[#behind + 1] = subscription
    end
  end
  return behind
end

-- The first messages whose jobs one operation may make, at least one.
local function droppable(behind, found)
  local dropped, units = {}, 0
  for i, message in ipairs(found) do
    if behind[1] then
      messages.load({message})
    end
    for _, subscription in ipairs(behind) do
      units = units + budget.of_delivery(subscription, message)
    end
    if i > 1 and units > budget.UNITS then
      return dropped
    end
    dropped[i] = message
  end
  return dropped
end

-- Whether the budget has room for the jobs of these messages, which it always has at first; if so, spend it.
local function fits_all(subscription, rest)
  local units = 0
  for _, message in ipairs(rest) do
    units = units + budget.of_delivery(subscription, message)
  end
  return budget.take(units, 0, budget.room() < budget.UNITS)
end

-- Drop messages, after delivering them to the subscriptions that are behind: as many as create at most 1000 jobs, and as
-- the budget goes. Give how many: none if a subscription has to wait for its turn.
local function drop(now, found)
  local behind = those_behind()
  local few = math.min(#found, math.floor(catalogue.most / math.max(#behind, 1)))
  local dropped = droppable(behind, {unpack(found, 1, few)})
  if #dropped == 0 then
    return 0
  end
  local last = dropped[#dropped].seq
  for _, subscription in ipairs(behind) do
    local rest = {}
    for _, message in ipairs(dropped) do
      if message.seq > subscription.position then
        rest[#rest + 1] = message
      end
    end
    if #rest > 0 then
      if not fits_all(subscription, rest) then
        return 0
      end
      hand_on(now, subscription, rest)
    end
  end
  for _, message in ipairs(dropped) do
    messages.remove(message)
  end
  store.emit(now, 'trimmed', #dropped, last)
  return #dropped
end

-- Keep a message, and deliver it to all matching subscriptions.
function publish.publish(now, op)
  subjects.check(op.subject)

  store.many = true
  local wanted, units = {}, 0
  for _, one in ipairs(subscriptions.wanting(op.subject)) do
    wanted[#wanted + 1] = {one}
    units = units + budget.of_delivery(one, op)
  end
  budget.check('publish', #wanted, units)
  budget.spend(units)
  local seq = store.emit(now, 'published', op.subject, #wanted)
  local message = messages.add(now, seq, op.subject, op.data, now + op.delay_ms)
  for _, given in ipairs(wanted) do
    given[2] = message
  end
  deliver(now, wanted)
  drop(now, messages.past_keeping(now, SWEEP))
  return seq
end

-- Give a subscription its next messages of the past; give how many are left.
local function give_more(now, subscription, most)
  if not subscription.position then
    return 0
  end
  store.many = true
  local found = messages.after(subscription.position, most)
  local fit = budget.afford(found, function(message)
    messages.load({message})
    return budget.of_delivery(subscription, message)
  end)
  return hand_on(now, subscription, {unpack(found, 1, fit)})
end

-- The number of the message after which a new subscription starts, or nil for the last one.
local function start(op)
  if not (op.after or op.since) then
    return nil
  end
  local before = op.since and messages.before(op.since) or 0
  return math.max(op.after or 0, before)
end

-- Create or change a subscription.
function publish.subscribe(now, op)
  for _, pattern in ipairs(op.patterns) do
    subjects.check_pattern(pattern)
  end
  if #subscriptions.distinct(op.patterns) > subscriptions.PATTERNS_MOST then
    refusals.refuse('LIMIT_REACHED', 'patterns of a subscription', subscriptions.PATTERNS_MOST)
  end
  local subscription = subscriptions.get(op.subscription)
  if not subscription and #subscriptions.listed() >= subscriptions.MOST then
    refusals.refuse('LIMIT_REACHED', 'subscriptions', subscriptions.MOST)
  end

  local seq = store.emit(now, 'subscribed', op.subscription, op.queue, op.klass)
  if not subscription then
    subscription = subscriptions.create(op.subscription)
    subscription.seq = seq
    subscription.position = start(op)
  end
  subscriptions.assign(subscription, op)
  subscriptions.save(subscription)
  return give_more(now, subscription, op.count)
end

-- Give a subscription its next messages.
function publish.catch_up(now, op)
  local subscription = subscriptions.find(op.subscription)

  return give_more(now, subscription, op.count)
end

-- End a subscription.
function publish.unsubscribe(now, op)
  local subscription = subscriptions.get(op.subscription)
  if not subscription then
    return 0
  end
  store.emit(now, 'unsubscribed', op.subscription, subscription.queue)
  subscriptions.remove(subscription)
  return 1
end

-- Show a subscription.
function publish.subscription_get(_, op)
  local subscription = subscriptions.get(op.subscription)
  return subscription and subscriptions.view(subscription)
end

-- List the subscriptions.
function publish.subscriptions(_, op)
  local all, shown = subscriptions.listed(), {}
  for i = op.offset + 1, math.min(op.offset + op.count, #all) do
    shown[#shown + 1] = subscriptions.view(all[i])
  end
  return shown
end

-- ---- the past

-- The units for showing a message.
local function showing(message)
  messages.load({message})
  return budget.of_message(message)
end

-- List messages that are kept, as far as the budget goes.
function publish.messages(_, op)
  local found, shown = messages.after(op.after, op.count), {}
  for i = 1, budget.afford(found, showing) do
    shown[i] = messages.view(found[i])
  end
  return shown
end

-- Drop the oldest messages that are kept.
function publish.trim(now, op)
  store.many = true
  return drop(now, messages.oldest(op.count))
end

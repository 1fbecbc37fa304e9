-- Pauses of queues: each has a reason, and the time at which it ends by itself, or 0.
--
-- A queue is paused while any pause lasts, so one client does not end another client's pause. An expired pause is
-- deleted by the next pop of the queue, or by the next change of its pauses; for a read it has ended at its time. The
-- queue's state says whether there are any, so that other operations need not check.

local pauses = {}

pauses.MOST = 10

-- The pauses of a queue: reason -> until, expired ones included.
function pauses.of(name)
  local found = {}
  if queues.has_pauses(name) then
    local all = writes.fetch('HGETALL', keys.queue(name, '-pauses'))
    for i = 1, #all, 2 do
      found[all[i]] = tonumber(all[i + 1])
    end
  end
  return found
end

-- The reasons of expired pauses, earliest first.
function pauses.ended(now, name)
  local all, reasons = pauses.of(name), {}
  for reason, till in pairs(all) do
    if till > 0 and till <= now then
      reasons[#reasons + 1] = reason
    end
  end
  table.sort(reasons, function(a, b)
    return all[a] < all[b] or all[a] == all[b] and config.before(a, b)
  end)
  return reasons
end

-- The pauses that last, by reason.
function pauses.lasting(now, name)
  local found = {}
  for reason, till in pairs(pauses.of(name)) do
    if till == 0 or till > now then
      found[#found + 1] = {reason, till}
    end
  end
  table.sort(found, function(a, b)
    return config.before(a[1], b[1])
  end)
  return found
end

-- The time at which a paused queue resumes by itself, or 0.
function pauses.ends_at(now, name)
  local last = 0
  for _, one in ipairs(pauses.lasting(now, name)) do
    if one[2] == 0 then
      return 0
    end
    last = math.max(last, one[2])
  end
  return last
end

-- Pause a queue for a reason.
function pauses.assign(name, reason, till)
  store.set_field(keys.queue(name, '-pauses'), reason, till)
  queues.set_pauses(name, '1')
end

-- End the pause for a reason, or all without one; give how many are left.
function pauses.drop(name, reason)
  local key, left = keys.queue(name, '-pauses'), 0
  if reason then
    writes.put_off('HDEL', key, reason)
    left = writes.fetch('HLEN', key)
  else
    writes.delete(key)
  end
  if left == 0 then
    queues.set_pauses(name, '0')
  end
  return left
end

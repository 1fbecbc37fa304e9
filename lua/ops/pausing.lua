-- Pauses of queues, each for a reason of its own.

local pausing = {}

-- End the pause for a reason, or without one all; say whether the queue goes on.
local function end_(now, name, reason)
  local left = pauses.drop(name, reason)
  store.emit(now, 'unpaused', name, reason or '', left)
  if left == 0 then
    queues.go_on(name)
  end
  return left == 0
end

-- Strike the pauses of a queue whose time is up; say whether it is paused for any other.
function pausing.holds(now, name)
  for _, reason in ipairs(pauses.ended(now, name)) do
    end_(now, name, reason)
  end
  return queues.has_pauses(name)
end

-- Stop handing out jobs of queues, for a reason.
function pausing.pause(now, op)
  for _, name in ipairs(op.queues) do
    local others = 0
    for _, one in ipairs(pauses.lasting(now, name)) do
      others = others + (one[1] ~= op.reason and 1 or 0)
    end
    if others >= pauses.MOST then
      refusals.refuse('LIMIT_REACHED', 'pauses of queue ' .. name, pauses.MOST)
    end
  end

  local till = op.for_ms > 0 and now + op.for_ms or 0
  local changed = 0
  for _, name in ipairs(op.queues) do
    if not pausing.holds(now, name) then
      changed = changed + 1
    end
    if pauses.of(name)[op.reason] ~= till then
      pauses.assign(name, op.reason, till)
      store.emit(now, 'paused', name, op.reason, till)
    end
  end
  return changed
end

-- Let queues go on, unless there are other reasons.
function pausing.unpause(now, op)
  local changed = 0
  for _, name in ipairs(op.queues) do
    if pausing.holds(now, name) and (not op.reason or pauses.of(name)[op.reason]) and end_(now, name, op.reason) then
      changed = changed + 1
    end
  end
  return changed
end

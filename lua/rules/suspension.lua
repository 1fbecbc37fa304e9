-- How the pauses of a queue end: by time, or one reason after the other.

local suspension = {}

-- End the pause for a reason, or without one all; say whether the queue goes on.
function suspension.end_(now, name, reason)
  local left = pauses.drop(name, reason)
  store.emit(now, 'unpaused', name, reason or '', left)
  if left == 0 then
    queues.resume(name)
  end
  return left == 0
end

-- Strike the pauses of a queue whose time is up; say whether it is paused for any other.
function suspension.holds(now, name)
  for _, reason in ipairs(pauses.ended(now, name)) do
    suspension.end_(now, name, reason)
  end
  return queues.has_pauses(name)
end

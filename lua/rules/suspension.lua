-- How the pauses of a queue end: by time, or by unpause.

local suspension = {}

-- End the pause for a reason, or all without one; say whether the queue resumes.
function suspension.end_(now, name, reason)
  local left = pauses.drop(name, reason)
  store.emit(now, 'unpaused', name, reason or '', left)
  if left == 0 then
    queues.resume(name)
  end
  return left == 0
end

-- Delete the expired pauses of a queue; say whether any other is left.
function suspension.holds(now, name)
  for _, reason in ipairs(pauses.ended(now, name)) do
    suspension.end_(now, name, reason)
  end
  return queues.has_pauses(name)
end

-- Queues, workers and options: pausing, forgetting, configuring.

local administer = {}

-- Take empty queues off the list.
function administer.forget(now, op)
  for _, name in ipairs(op.queues) do
    local length = queues.length(name) + schedules.size(name) + requests.timed(name)
    if length > 0 then
      refusals.refuse('QUEUE_NOT_EMPTY', name, length)
    end
  end

  local forgotten = 0
  for _, name in ipairs(op.queues) do
    if queues.forget(name) then
      store.emit(now, 'forgotten', name)
      forgotten = forgotten + 1
    end
  end
  return forgotten
end

-- Take workers off the list.
function administer.deregister(now, op)
  local gone = 0
  for _, name in ipairs(op.workers) do
    if workers.deregister(name) then
      store.emit(now, 'deregistered', name)
      gone = gone + 1
    end
  end
  return gone
end

-- List the options, then those set for single queues, by name.
function administer.config()
  local set, page = config.all(), {}
  local function show(name, default)
    page[#page + 1] = {name, set[name] or default, set[name] and 1 or 0}
  end
  for _, name in ipairs(catalogue.option_names) do
    show(name, catalogue.options[name].default)
  end
  for _, name in ipairs(config.special()) do
    show(name)
  end
  return page
end

-- Show the value of an option.
function administer.config_get(_, op)
  return config.get(op.option) or config.option(op.option).default
end

local function configure(now, option, value, change)
  if option == 'max-events' then
    store.keep_events(value)
  elseif option == 'max-journal' then
    journal.keep(value)
  elseif option == 'jobs-history' or option == 'jobs-history-count' then
    completed.recheck()
  end
  change(option, value)
  store.emit(now, 'configured', option, value)
  return value
end

-- Set an option.
function administer.config_set(now, op)
  local option = config.option(op.option)
  if op.value < option.low or op.value > option.high then
    refusals.refuse('BAD_VALUE', op.option, option.low, option.high)
  end

  return configure(now, op.option, op.value, config.assign)
end

-- Reset an option to its default.
function administer.config_unset(now, op)
  local default = config.option(op.option).default

  return configure(now, op.option, default, config.clear)
end

-- Stop handing out jobs of queues, for a reason.
function administer.pause(now, op)
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
    if not suspension.holds(now, name) then
      changed = changed + 1
    end
    if pauses.of(name)[op.reason] ~= till then
      pauses.assign(name, op.reason, till)
      store.emit(now, 'paused', name, op.reason, till)
    end
  end
  return changed
end

-- End pauses of queues; a queue with other pauses stays paused.
function administer.unpause(now, op)
  local changed = 0
  for _, name in ipairs(op.queues) do
    if suspension.holds(now, name) and (not op.reason or pauses.of(name)[op.reason]) and suspension.end_(now, name, op.reason) then
      changed = changed + 1
    end
  end
  return changed
end

-- Begin an epoch; the current one is begun already.
function administer.begin_epoch(now, op)
  local current = tonumber(store.epoch)
  if op.epoch < current then
    refusals.refuse('EPOCH_PASSED', store.text(op.epoch), store.epoch)
  end

  if op.epoch > current then
    epochs.begin(now, op.epoch)
  end
  return op.epoch
end

-- The lists of queues and workers, and the options.

local configuring = {}

-- Take empty queues off the list.
function configuring.forget(now, op)
  for _, name in ipairs(op.queues) do
    local length = queues.length(name) + schedules.size(name)
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
function configuring.deregister(now, op)
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
function configuring.list_config()
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
function configuring.config_get(_, op)
  return config.get(op.option) or config.option(op.option).default
end

local function configure(now, option, value, change)
  if option == 'max-events' then
    store.keep_events(value)
  elseif option == 'max-journal' then
    journal.keep(value)
  elseif option == 'jobs-history' or option == 'jobs-history-count' then
    completed.look_again()
  end
  change(option, value)
  store.emit(now, 'configured', option, value)
  return value
end

-- Set an option.
function configuring.config_set(now, op)
  local option = config.option(op.option)
  if op.value < option.low or op.value > option.high then
    refusals.refuse('BAD_VALUE', op.option, option.low, option.high)
  end

  return configure(now, op.option, op.value, config.assign)
end

-- Set an option back to its default.
function configuring.config_unset(now, op)
  local default = config.option(op.option).default

  return configure(now, op.option, default, config.clear)
end

-- Configuration: values that nobody has set are not stored. The options and their ranges are generated from
-- qmodel/contract/settings.py.

local config = {}

local PER_QUEUE = 'heartbeat-'
local OF_QUEUE = {'heartbeat', 'fair', 'aging'} -- the options that a queue may have for itself

local known_text, known -- the text that was decoded last, and the options that it sets
local beats, rates, owners = {}, {}, {} -- queue -> its lease, its rate of aging, whether it has a throttle of its own

-- Exchange what is kept of one namespace for that of another one (state/keys.lua).
function config.keep(namespace)
  namespace.config_text, namespace.options, namespace.beats, namespace.owners = known_text, known, beats, owners
  namespace.rates = rates
end

function config.recall(namespace)
  known_text, known, beats, owners = namespace.config_text, namespace.options, namespace.beats, namespace.owners
  rates = namespace.rates
end

-- The option that a name sets, for all queues or for one; nil if there is none.
function config.meant_by(name)
  for _, option in ipairs(OF_QUEUE) do
    if string.sub(name, 1, #option + 1) == option .. '-' and #name > #option + 1 then
      return catalogue.options[option]
    end
  end
  return catalogue.options[name]
end

-- Find an option by name, or refuse.
function config.option(name)
  return config.meant_by(name) or refusals.refuse('UNKNOWN_OPTION', name)
end

-- All options that are set: option -> value.
function config.all()
  local set = {}
  for name, value in string.gmatch(store.config or '', '([^\t\n]+)\t(%d+)\n') do
    set[name] = tonumber(value)
  end
  return set
end

-- Forget what the options say of each queue.
function config.forget_queues()
  beats, rates, owners = {}, {}, {}
end

-- Decode the options that are set.
local function decode()
  known, known_text = config.all(), store.config
  config.forget_queues()
end

-- The value that is set for an option, or nil.
function config.get(name)
  if store.config then
    if store.config ~= known_text then
      decode()
    end
    return known[name]
  end
end

-- The value of an option that is known to exist.
function config.value(name)
  return store.config and config.get(name) or catalogue.options[name].default
end

function config.text(name)
  return store.text(config.value(name))
end

-- How long a lease in a queue lasts, in milliseconds.
function config.heartbeat(queue)
  if not store.config then
    return catalogue.options['heartbeat'].default
  end
  if store.config ~= known_text then
    decode()
  end
  local beat = beats[queue]
  if not beat then
    beat = known[PER_QUEUE .. queue] or known['heartbeat'] or catalogue.options['heartbeat'].default
    beats[queue] = beat
  end
  return beat
end

-- Whether the fair keys of a queue take turns (state/turns.lua).
function config.is_fair(queue)
  return store.config and (config.get('fair-' .. queue) or config.value('fair')) == 1
end

-- In how many milliseconds a waiting job improves by one priority (state/aging.lua); 0, if it never does. In a fair queue
-- none does: the turns order its jobs.
function config.aging(queue)
  if not store.config then
    return 0
  elseif store.config ~= known_text then
    decode()
  end
  local rate = rates[queue]
  if not rate then
    rate = config.is_fair(queue) and 0 or known['aging-' .. queue] or known['aging'] or 0
    rates[queue] = rate
  end
  return rate
end

local function write(set)
  local lines = {}
  for name, value in pairs(set) do
    lines[#lines + 1] = name .. '\t' .. value .. '\n'
  end
  for line in string.gmatch(store.config or '', '\1[^\t]+\t\n') do
    lines[#lines + 1] = line
  end
  store.config = #lines > 0 and table.concat(lines)
  store.write(keys.config, store.config)
end

-- Set an option.
function config.assign(name, to)
  local set = config.all()
  set[name] = to
  write(set)
end

-- Reset an option to its default.
function config.clear(name)
  local set = config.all()
  set[name] = nil
  write(set)
end

-- The queues with a throttle of their own are listed here too, because every operation reads this: `\1<queue><TAB>`.

-- Whether a queue has a throttle of its own.
function config.owns(queue)
  if not store.config then
    return false
  elseif store.config ~= known_text then
    decode()
  end
  local owns = owners[queue]
  if owns == nil then
    owns = string.find(store.config, '\1' .. queue .. '\t', 1, true) ~= nil
    owners[queue] = owns
  end
  return owns
end

-- Record whether a queue has a throttle of its own.
function config.set_own(queue, owns)
  if owns ~= (config.owns(queue) or false) then
    local line = '\1' .. queue .. '\t\n'
    if owns then
      store.config = (store.config or '') .. line
    else
      local first, last = string.find(store.config, line, 1, true)
      store.config = string.sub(store.config, 1, first - 1) .. string.sub(store.config, last + 1)
    end
    store.config = store.config ~= '' and store.config
    store.write(keys.config, store.config)
  end
end

-- The options set for single queues, by name, ordered by bytes (Lua compares text by the server's locale).
function config.special()
  local names = {}
  for name in pairs(config.all()) do
    if not catalogue.options[name] then
      names[#names + 1] = name
    end
  end
  table.sort(names, config.before)
  return names
end

function config.before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- The configuration of the qless dialect, in qless's names and seconds, twin of qmodel/dialects/qless/settings.py.

local qless_settings = {}

local APPLICATION = 'qless'
local OF_QUEUE = {'heartbeat'} -- `<queue>-heartbeat` here is `heartbeat-<queue>` in the engine
local ALWAYS = { -- always shown in the list, even if not set
  ['heartbeat'] = true, ['grace-period'] = true, ['jobs-history'] = true, ['jobs-history-count'] = true,
  ['stats-history'] = true, ['histogram-history'] = true,
}
local IN_SECONDS = {['heartbeat'] = true, ['grace-period'] = true, ['jobs-history'] = true, ['max-worker-age'] = true}

-- The engine's name of an option.
local function ours(option)
  for _, kind in ipairs(OF_QUEUE) do
    if string.sub(option, -#kind - 1) == '-' .. kind and #option > #kind + 1 then
      return kind .. '-' .. string.sub(option, 1, -#kind - 2)
    end
  end
  return option
end

-- qless's name of an option.
local function theirs(option)
  for _, kind in ipairs(OF_QUEUE) do
    if string.sub(option, 1, #kind + 1) == kind .. '-' then
      return string.sub(option, #kind + 2) .. '-' .. kind
    end
  end
  return option
end

local function in_seconds(option)
  return IN_SECONDS[option] or string.sub(option, 1, 10) == 'heartbeat-'
end

-- A value in qless's unit, as text.
local function value_of(option, value)
  return in_seconds(option) and qless_texts.seconds(value) or qless_texts.digits(value)
end

-- Show an option, or all: qless's own ones even if not set.
function qless_settings.config_get(option)
  if option == 'application' then
    return APPLICATION
  end
  local shown = {'application', qless_texts.quote(APPLICATION)}
  local name = option ~= nil and ours(option)
  for _, setting in ipairs(qless_session.ask('config.get', 'config', {})) do
    local value = value_of(setting[1], setting[2])
    if setting[1] == name then
      return string.find(value, '.', 1, true) and value or tonumber(value)
    end
    if setting[3] == 1 or ALWAYS[setting[1]] then
      shown[#shown + 1] = theirs(setting[1])
      shown[#shown + 1] = value
    end
  end
  return option == nil and qless_texts.record(shown) or nil
end

-- Set an option.
function qless_settings.config_set(option, value)
  option = qless_arguments.need('config.set', 'option', option)
  value = qless_arguments.need('config.set', 'value', value)
  local name, number = ours(option), qless_texts.number(value)
  if not number or math.abs(number) >= 1e11 then
    qless_session.fail('config.set(): Arg "value" not a number: ' .. qless_texts.shown(value))
  end
  if number < 0 then
    qless_session.fail('config.set(): Arg "value" must not be negative: ' .. qless_texts.shown(value))
  end
  local scaled = in_seconds(name) and qless_texts.milliseconds(number) or qless_texts.whole(value)
  if not scaled then
    qless_session.fail('config.set(): Arg "value" not a whole number: ' .. qless_texts.shown(value))
  end

  local unit = in_seconds(name) and ' milliseconds' or ''
  local sentences = {BAD_VALUE = 'Option {0} must be from {1} to {2}' .. unit}
  qless_session.ask('config.set', 'config_set', {name, qless_texts.digits(scaled)}, sentences)
  qless_session.log({'event', 'config_set', 'option', option, 'value', value})
end

-- Reset an option to its default; an unknown name is allowed.
function qless_settings.config_unset(option)
  option = qless_arguments.need('config.unset', 'option', option)
  if qless_session.knows('config.unset', 'config_unset', {ours(option)}) then
    qless_session.log({'event', 'config_unset', 'option', option})
  end
end

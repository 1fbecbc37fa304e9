-- The configuration of the qless dialect, in qless's names and seconds, twin of qmodel/dialects/qless/settings.py.

local qless_settings = {}

qless_settings.CONFIG = 'qless:config' -- metadata: the texts of all options that bindings have set

local DEFAULTS = {
  {'application', 'qless'}, {'grace-period', 10}, {'heartbeat', 60}, {'histogram-history', 7},
  {'jobs-history', 604800}, {'jobs-history-count', 50000}, {'stats-history', 30},
}
local DEFAULTS_OF_REQLESS = {
  {'application', 'reqless'}, {'grace-period', '10'}, {'heartbeat', '60'}, {'jobs-history', '604800'},
  {'jobs-history-count', '50000'}, {'max-job-history', '100'}, {'max-pop-retry', '1'}, {'max-worker-age', '86400'},
}
local OF_QUEUE = {'heartbeat'} -- `<queue>-heartbeat` here is `heartbeat-<queue>` in the engine
local MOST_ENTRIES = 'max-job-history'
qless_settings.ENTRIES = 100 -- how many entries of a job's history qless keeps if nothing is set
local HISTORY, CHANGES = 'qless:history', 'changes' -- metadata: when `max-job-history` was set, and to what
local MOST_CHANGES = 20
local MOST_STAGES = 1000
local LEAST_STAGES = 40 -- the next entry of a history cuts it, not `max-job-history` itself
local WORKER_AGE = 'max-worker-age'
local LEAST_AGE_MS = 86400000 -- the engine keeps silent workers for a day: an application that raises the age sees them again
local IN_SECONDS = {['heartbeat'] = true, ['grace-period'] = true, ['jobs-history'] = true, [WORKER_AGE] = true}

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

-- The engine's value of a number; negative ones are 0. A history has stages that qless does not have.
local function bounded(name, number)
  if name == MOST_ENTRIES then
    return (number == 1 or number > 2) and math.max(2 * math.floor(number) + 2, LEAST_STAGES) or MOST_STAGES
  end
  local whole, least = number < 0 and 0 or math.floor(number), name == WORKER_AGE and LEAST_AGE_MS or 0
  return math.max(in_seconds(name) and qless_texts.milliseconds(number) or whole, least)
end

-- The engine's value of a text; nil if it is out of the option's range.
local function scaled(name, text)
  local number = qless_texts.number(text)
  if not number or math.abs(number) >= 1e11 or number < 0 then
    return nil
  end
  return bounded(name, number)
end

-- All options that are set, and the defaults.
local function all()
  local shown, kept, of_engine = {}, {}, {}
  for _, one in ipairs(qless_session.reqless and not qless_session.early and DEFAULTS_OF_REQLESS or DEFAULTS) do
    shown[one[1]] = one[2]
  end
  for _, pair in ipairs(qless_session.ask('config.get', 'metadata_get', {qless_settings.CONFIG})) do
    kept[pair[1]] = pair[2]
  end
  for _, setting in ipairs(qless_session.ask('config.get', 'config', {})) do
    local name = theirs(setting[1])
    of_engine[name] = true
    local text = kept[name]
    local value = text and scaled(setting[1], text)
    if text and (value == nil or value == tonumber(setting[2])) then
      shown[name] = text
    elseif setting[3] == 1 then
      shown[name] = value_of(setting[1], setting[2])
    end
  end
  for name, text in pairs(kept) do
    if not of_engine[name] then
      shown[name] = text
    end
  end
  return shown
end

-- When `max-job-history` was set, and to what, earliest first.
function qless_settings.entries_most()
  local changes = {}
  for at, most in string.gmatch(qless_session.note(HISTORY, CHANGES) or '', '(%d+) (%-?%d+);') do
    changes[#changes + 1] = {tonumber(at), tonumber(most)}
  end
  return changes
end

-- Note what `max-job-history` is from now on. Of many changes the first of those that are kept holds since ever.
local function note_most(most)
  local changes, text = qless_settings.entries_most(), ''
  changes[#changes + 1] = {qless_session.now, most}
  for i = math.max(#changes - MOST_CHANGES, 0) + 1, #changes do
    local at = i == #changes - MOST_CHANGES + 1 and 0 or changes[i][1]
    text = text .. qless_texts.digits(at) .. ' ' .. qless_texts.digits(changes[i][2]) .. ';'
  end
  qless_session.ask('config.set', 'metadata_set', {HISTORY, CHANGES, text})
end

-- Show an option, or all.
function qless_settings.config_get(option)
  local shown, names, pairs_ = all(), {}, {}
  if option ~= nil then
    return shown[option]
  end
  for name in pairs(shown) do
    names[#names + 1] = name
  end
  table.sort(names, config.before)
  for _, name in ipairs(names) do
    pairs_[#pairs_ + 1] = name
    pairs_[#pairs_ + 1] = type(shown[name]) == 'number' and qless_texts.digits(shown[name]) or qless_texts.quote(shown[name])
  end
  return qless_texts.record(pairs_)
end

-- Set an option. An application may keep options of its own; those that the engine knows must be numbers.
function qless_settings.config_set(option, value)
  option = qless_arguments.need('config.set', 'option', option)
  value = qless_arguments.need('config.set', 'value', value)
  local name, number = ours(option), qless_texts.number(value)
  local meant = config.meant_by(name)
  if meant and not (number and math.abs(number) < 1e11) then
    qless_session.fail('config.set(): Arg "value" not a number: ' .. qless_texts.shown(value))
  end
  qless_session.ask('config.set', 'metadata_set', {qless_settings.CONFIG, option, value})
  if meant then
    local given = math.min(math.max(bounded(name, number), meant.low), meant.high)
    qless_session.ask('config.set', 'config_set', {name, qless_texts.digits(given)})
  end
  if option == MOST_ENTRIES then
    note_most(qless_texts.whole(value) or 0)
  end
  qless_session.log({'option', option, 'event', 'config_set', 'value', value})
end

-- Reset an option to its default.
function qless_settings.config_unset(option)
  option = qless_arguments.need('config.unset', 'option', option)
  qless_session.attempt('config_unset', {ours(option)})
  qless_session.ask('config.unset', 'metadata_unset', {qless_settings.CONFIG, option})
  if option == MOST_ENTRIES then
    note_most(qless_settings.ENTRIES)
  end
  qless_session.log({'event', 'config_unset', 'option', option})
end

-- The milliseconds after which `workers` forgets a silent worker.
function qless_settings.worker_age()
  local text = qless_session.note(qless_settings.CONFIG, WORKER_AGE)
  local kept, number = qless_session.option(WORKER_AGE), text and qless_texts.number(text)
  local value = number and scaled(WORKER_AGE, text)
  return number and (value == nil or value == kept) and qless_texts.milliseconds(number) or kept
end

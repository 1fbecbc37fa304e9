-- Options: rare properties of jobs, by name, as text.
--
-- A plain job has none, and pays nothing for them. They say how a job's present stage is to run, and what it holds that
-- must be released when it ends. A put assigns all of them anew. In a record they are one text, ordered by name:
-- `<name>=<value>`, separated by a byte that no text in UTF-8 contains.

local options = {}

local BETWEEN = '\255'

-- The options of the engine that outlive a put.
local KEPT = {'after', 'results'}

-- The options set by an argument of `put` of the same name.
local OF_PUT = {
  'lifo', 'lease_ms', 'dead_queue', 'ttl_ms', 'timeout_ms', 'keep_complete_ms', 'keep_failed_ms', 'keep_newest',
  'throttles',
  'cost', 'ordered', 'max_lapses', 'retry_delay_ms', 'retry_delay_max_ms', 'fair_key',
  'fair_weight', 'unique',
}

-- A step asks for ten options of a job in a row. So the values of some texts are kept.
local MOST = 64
local known, sizes, count = {}, {}, 0 -- text -> values by name; text -> how many; how many texts

local function read(text)
  if count == MOST then
    known, sizes, count = {}, {}, 0
  end
  local values, size = {}, 0
  for name, value in string.gmatch(text, '([^=\255]+)=([^\255]*)') do
    values[name], size = value, size + 1
  end
  known[text], sizes[text], count = values, size, count + 1
  return values
end

-- The value of an option of a job, or nil.
function options.get(job, name)
  local text = job.options
  if text == '' then
    return nil
  end
  local values = known[text] or read(text)
  return values[name]
end

-- How many options a job has that has some.
function options.size(job)
  local text = job.options
  if not known[text] then
    read(text)
  end
  return sizes[text]
end

local function write(job, names, values)
  table.sort(names)
  for i, name in ipairs(names) do
    names[i] = name .. '=' .. values[name]
  end
  job.options = table.concat(names, BETWEEN)
end

-- Whether any of these jobs has options.
function options.of_any(found)
  for i = 1, #found do
    local job = found[i]
    if job.options ~= '' then
      return true
    end
  end
  return false
end

-- Set an option of a job: text without control characters, or a whole number.
function options.set(job, name, value)
  options.drop(job, name)
  local said = type(value) == 'number' and store.text(value) or value
  local text, one = job.options, name .. '=' .. said
  for at, other in string.gmatch(text, '()([^=\255]+)=[^\255]*') do
    if name < other then
      job.options = string.sub(text, 1, at - 1) .. one .. BETWEEN .. string.sub(text, at)
      return
    end
  end
  job.options = text == '' and one or text .. BETWEEN .. one
end

-- Remove an option of a job.
function options.drop(job, name)
  if options.get(job, name) then
    local text = BETWEEN .. job.options
    local at = string.find(text, BETWEEN .. name .. '=', 1, true)
    local next_at = string.find(text, BETWEEN, at + 1, true) or #text + 1
    job.options = string.sub(string.sub(text, 1, at - 1) .. string.sub(text, next_at), 2)
  end
end

-- Write an argument as an option: a switch as 1, a list separated by spaces.
local function as_text(value)
  if type(value) == 'table' then
    return table.concat(value, ' ')
  elseif value == true then
    return '1'
  end
  return type(value) == 'number' and store.text(value) or value
end

-- Whether a put gives any option, or any other optional argument: most give none.
function options.are_given(op)
  return op.named
end

-- Give a job exactly the options of a put. A switch that is off, an empty list and an empty name set no option.
function options.assign(job, op)
  local names, values = {}, {}
  for _, name in ipairs(KEPT) do
    values[name] = options.get(job, name)
    names[#names + 1] = values[name] and name
  end
  for _, name in ipairs(OF_PUT) do
    local value = op[name]
    if value and value ~= '' and not (type(value) == 'table' and #value == 0) then
      names[#names + 1] = name
      values[name] = as_text(value)
    end
  end
  write(job, names, values)
end

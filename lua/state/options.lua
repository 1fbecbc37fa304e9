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
  'lifo', 'lease_ms', 'dead_queue', 'ttl_ms', 'timeout_ms', 'keep_complete_ms', 'keep_failed_ms', 'throttles',
  'cost', 'ordered', 'unique',
}

-- The value of an option of a job, or nil.
function options.get(job, name)
  if job.options == '' then
    return nil
  end
  local text = BETWEEN .. job.options
  local _, at = string.find(text, BETWEEN .. name .. '=', 1, true)
  if not at then
    return nil
  end
  return string.match(text, '^[^\255]*', at + 1)
end

local function read(job)
  local names, values = {}, {}
  for name, value in string.gmatch(job.options, '([^=\255]+)=([^\255]*)') do
    names[#names + 1] = name
    values[name] = value
  end
  return names, values
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
  local names, values = read(job)
  if not values[name] then
    names[#names + 1] = name
  end
  values[name] = type(value) == 'number' and store.text(value) or value
  write(job, names, values)
end

-- Remove an option of a job.
function options.drop(job, name)
  if options.get(job, name) then
    local names, values = read(job)
    local left = {}
    for _, other in ipairs(names) do
      if other ~= name then
        left[#left + 1] = other
      end
    end
    write(job, left, values)
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

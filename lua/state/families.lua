-- Families of throttles: limits for all throttles whose names match a pattern. The rules are described in
-- qmodel/model/state/families.py.
--
-- The families and their generations are one text, the longest pattern first. It is read when a throttle is met that
-- has no limits of its own.

local families = {}

local MOST = 25
local LINE = '([^\t\n]+)\t(%d+)\n'

local known_text, known = '', {} -- the text that was decoded last, and its families

local function listed()
  local text = store.read(keys.families) or ''
  if text ~= known_text then
    known_text, known = text, {}
    for name, generation in string.gmatch(text, LINE) do
      known[#known + 1] = {name, generation}
    end
  end
  return known
end

local function write(found)
  local lines = {}
  for i, family in ipairs(found) do
    lines[i] = family[1] .. '\t' .. family[2] .. '\n'
  end
  store.write(keys.families, #lines > 0 and table.concat(lines))
end

-- The families but one.
local function others(name)
  local found = {}
  for _, family in ipairs(listed()) do
    if family[1] ~= name then
      found[#found + 1] = family
    end
  end
  return found
end

-- Whether a throttle of this name is a family.
function families.is_family(name)
  return string.find(name, '*', 1, true) and not throttles.queue_of(name)
end

-- Refuse one family too many.
function families.check_room(name)
  if families.is_family(name) and #others(name) >= MOST then
    refusals.refuse('LIMIT_REACHED', 'families of throttles', MOST)
  end
end

local function before(a, b)
  if #a[1] ~= #b[1] then
    return #a[1] > #b[1]
  end
  return config.before(a[1], b[1])
end

-- Remember a family and its generation: the longest pattern first, then by name.
function families.keep(name, generation)
  if families.is_family(name) then
    local found = others(name)
    found[#found + 1] = {name, store.text(generation)}
    table.sort(found, before)
    write(found)
  end
end

-- Forget a family, if it is one.
function families.drop(name)
  if families.is_family(name) then
    write(others(name))
  end
end

-- The family of a throttle without limits of its own: its pattern and its generation; or false. A queue's own has none.
function families.of(name)
  for _, family in ipairs(listed()) do
    if subjects.like(family[1], name) and string.sub(name, 1, #throttles.OWN) ~= throttles.OWN then
      return family
    end
  end
  return false
end

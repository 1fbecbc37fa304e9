-- Throttles in use: jobs hold them or are parked at them, their window is not empty, or their bucket is not full.
--
-- Two sorted sets list throttles by their names: those with limits, and those with jobs or with a window or a bucket under
-- their family (throttles.made, throttles.forget_if_empty). So pages are read by name,
-- without a search of all keys.

local throttles_in_use = {}

-- Where a name stands in a sorted list, or would stand.
local function place(names, name)
  local first, last = 1, #names + 1
  while first < last do
    local middle = math.floor((first + last) / 2)
    if config.before(names[middle], name) then
      first = middle + 1
    else
      last = middle
    end
  end
  return first
end

-- The first names of two sorted lists; the first of these is short as a rule.
local function merged(some, others, most)
  local found, at = {}, 1
  for _, name in ipairs(some) do
    local stop = place(others, name)
    for i = at, stop - 1 do
      found[#found + 1] = others[i]
    end
    found[#found + 1] = name
    at = others[stop] == name and stop + 1 or stop
  end
  for i = at, #others do
    found[#found + 1] = others[i]
  end
  return {unpack(found, 1, math.min(#found, most))}
end

-- The first listed throttles that begin as a pattern, by name, after a name.
function throttles_in_use.known(match, after, most)
  local begin = string.match(match, '^[^*]*')
  local low = (after == '' or config.before(after, begin)) and '[' .. begin or '(' .. after
  local high = begin == '' and '+' or '(' .. begin .. '\255'
  local function page(list)
    return writes.fetch('ZRANGE', list, low, high, 'BYLEX', 'LIMIT', 0, most)
  end
  local limited, found = page(keys.throttles), page(keys['throttles-used'])
  return limited[1] and merged(limited, found, most) or found
end

local function parked_in(name)
  return writes.fetch('ZCARD', keys.throttle(name, '-queues'))
end

-- Whether a throttle is in use now.
function throttles_in_use.has(now, name)
  local throttle = throttles.of(name)
  return throttles.running(name) > 0 or parked_in(name) > 0 or throttles.used(name, throttle, now) > 0
    or not throttles.is_full(throttle, now)
end

-- The units for showing a throttle.
function throttles_in_use.showing(name)
  return budget.of_throttle(throttles.running(name), parked_in(name))
end

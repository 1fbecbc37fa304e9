-- Several operations in one call.
--
--   FCALL qmodel_v1_calls 1 <prefix> (<operation> <count> <now> <request> <argument> ...) ...
--
-- They save the server what a call costs beside its operation. Each is a step of its own. The reply is the list of theirs,
-- errors included. Operations of one kind in a row are done together where they are plain (ops/plain.lua).

local calls = {}

local BASE = 2 -- units of the budget that each of them counts as
local WORDS = 8 -- strings that count as another unit
local SHARE = 10 -- a call begins no more of them once it has spent this part of a budget
local MOST = 100 -- the most operations that are done together

-- Whether these are operations that write, each with the number of its strings.
local function are_calls(args)
  local at = 1
  while args[at] do
    local spec, size = catalogue.operations[args[at]], arguments.whole(args[at + 1], 2, #args)
    if not spec or spec.reads or not size or at + 1 + size > #args then
      return false
    end
    at = at + 2 + size
  end
  return at > 1
end

-- The strings of an operation.
local function part(args, first, last_)
  if last_ - first < 1000 then
    return {unpack(args, first, last_)}
  end
  local own = {}
  for i = first, last_ do
    own[i - first + 1] = args[i]
  end
  return own
end

-- The units that an operation with so many strings counts as, beside those that it spends.
local function units_of(size)
  return BASE + math.floor(size / WORDS)
end

-- Where the operations that can be done together begin, the numbers of their strings, and the units that they count as:
-- those of one kind, at one moment.
local function row(args, at, most, units)
  local operation, moment, places, sizes, spent = args[at], args[at + 2], {}, {}, 0
  while args[at] == operation and args[at + 2] == moment and #places < most and spent < units do
    local size = args[at + 1] + 0
    places[#places + 1], sizes[#sizes + 1] = at + 2, size
    spent, at = spent + units_of(size), at + 2 + size
  end
  return places, sizes
end

-- Execute operations in order, each a step of its own; give their replies. Once these operations have cost a tenth of
-- what one may cost, it leaves the others to the next call: then there are fewer replies. So a call with many operations
-- costs hardly more than a call with one.
--
-- The rows that are tried together become shorter where they turned out not to be plain, so that trying costs little.
function calls.execute(prefix, args)
  if not are_calls(args) then
    return {'BAD_ARGUMENT', 'calls', 'operations'}
  end
  local replies, spent, at, most = {}, 0, 1, MOST
  keys.begin(prefix)
  register.share(true)
  while args[at] and spent * SHARE < budget.UNITS do
    local operation, size, together, found = args[at], args[at + 1] + 0, 0, nil
    if plain.groups[operation] and most > 1 and args[at + 2 + size] == operation then
      local places, sizes = row(args, at, most, budget.UNITS / SHARE - spent)
      together, found = register.group(operation, prefix, args, places, sizes)
      most = together == #places and MOST or math.floor(#places / 2)
    end
    for i = 1, together do
      replies[#replies + 1] = found[i]
      size = args[at + 1] + 0
      spent, at = spent + units_of(size), at + 2 + size
    end
    if together == 0 then
      budget.begin()
      replies[#replies + 1] = register.call(operation, prefix, part(args, at + 2, at + 1 + size), nil, true)
      spent = spent + units_of(size) + budget.UNITS - budget.room()
      at = at + 2 + size
    end
  end
  register.share(false)
  return replies
end

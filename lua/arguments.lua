-- Arguments from the wire: required ones by position, then `name value` pairs; a list repeats its name, and `no <name>`
-- is a list that is empty on purpose; an operation within another is its name, the number of its strings, and those.
-- What may stand where is in catalogue.lua, which is generated; the checks are those of qmodel/arguments.py.

local arguments = {}

local RESERVED = {'-data', '-dependencies', '-dependents'}

arguments.reserved = RESERVED

local accept = {}

function accept.text(kind, value)
  return #value <= kind.most and value or nil
end

function accept.name(kind, value)
  return #value <= kind.most and string.find(value, '^%C+$') and value or nil
end

function accept.id(kind, value)
  if #value > kind.most or not string.find(value, '^[!-~]+$') then
    return nil
  end
  local last = string.byte(value, -1)
  if last == 97 or last == 115 then -- an a or an s, as the reserved endings have
    for _, ending in ipairs(RESERVED) do
      if string.sub(value, -#ending) == ending then
        return nil
      end
    end
  end
  return value
end

function accept.whole(kind, value)
  if #value > 15 or not (value == '0' or string.find(value, '^%-?[1-9]%d*$')) then
    return nil
  end
  local number = tonumber(value)
  return number >= kind.low and number <= kind.high and number or nil
end

function accept.flag(_, value)
  if value == '1' or value == '0' then
    return value == '1'
  end
end

function arguments.accept(kind, value)
  return accept[kind.kind](kind, value)
end

local function refuse(operation, argument)
  refusals.refuse('BAD_ARGUMENT', operation, argument)
end

-- The patterns are anchored at both ends: one that is not is tried anew at every character, for ten times the cost.
local function take(operation, name, kind, value)
  local accepted = accept[kind.kind](kind, value)
  if accepted == nil then
    refuse(operation, name)
  end
  return accepted
end

-- Take one `name value` pair at `at` into `op`; give where the next one begins.
local function take_pair(operation, spec, op, args, at, last)
  local name = args[at]
  local kind = spec.arguments[name == 'no' and args[at + 1] or name]
  if not kind or at == last or (name == 'no' and kind.kind ~= 'list') then
    refuse(operation, kind and name or 'option')
  end
  if name == 'no' then
    op[args[at + 1]] = {}
  elseif kind.kind == 'list' then
    local list = op[name] or {}
    op[name] = list
    list[#list + 1] = take(operation, name, kind.item, args[at + 1])
  elseif kind.kind == 'operations' then
    local size = accept.whole(catalogue.size, args[at + 1])
    if not size or at + 1 + size > last then
      refuse(operation, name)
    end
    local list = op[name] or {}
    op[name] = list
    list[#list + 1] = arguments.decode(operation, catalogue.operations[kind.of], args, at + 2, at + 1 + size)
    return at + 2 + size
  else
    op[name] = take(operation, name, kind, args[at + 1])
  end
  return at + 2
end

-- The operation written in args[first..last]; refuse the first argument that is not what it may be.
function arguments.decode(operation, spec, args, first, last)
  local op = spec.new()
  local positional, accepted = spec.positional, spec.accepted
  for i = 1, #positional do
    local kind, value = accepted[i], args[first + i - 1]
    value = first + i - 1 <= last and accept[kind.kind](kind, value)
    if value == nil or value == false then
      refuse(operation, positional[i])
    end
    op[positional[i]] = value
  end
  local at = first + #positional
  while at <= last do
    at = take_pair(operation, spec, op, args, at, last)
  end
  for i = 1, #spec.lists do
    local name = spec.lists[i]
    local kind, list = spec.arguments[name], op[name]
    if list and (#list > catalogue.most or #list < kind.least) or not (list or kind.optional) then
      refuse(operation, name)
    end
  end
  return op
end

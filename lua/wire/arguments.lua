-- Arguments from the wire. Required arguments come by position, then `name value` pairs. A list repeats its name, and
-- `no <name>` is a list that is empty on purpose. A nested operation is its name, the number of its strings, and these
-- strings. The generated catalogue.lua says which argument is of which kind; the checks are those of
-- qmodel/contract/arguments.py.

local arguments = {}

local RESERVED = {'-data', '-dependencies', '-dependents', '-results'}

arguments.reserved = RESERVED

local MOST = 200 -- the most cached names
local SHORT = 64 -- the most bytes of a cached name: less than the limit of any kind of name

local accept = {}

function accept.text(kind, value)
  return #value <= kind.most and value or nil
end

-- A cache of accepted names: the same few come with every call.
arguments.names = {}

local count = 0

-- The characters of several bytes, as Unicode 15 has them in its table 3-7.
local CHARACTERS = {
  '[\194-\223][\128-\191]',
  '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]', '\237[\128-\159][\128-\191]',
  '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]',
  '\244[\128-\143][\128-\191][\128-\191]',
}

-- Whether a text that is not ASCII is in UTF-8: nothing else is left beside these characters.
function arguments.is_utf8(text)
  for i = 1, #CHARACTERS do
    text = string.gsub(text, CHARACTERS[i], '?')
  end
  return not string.find(text, '[\128-\255]')
end

-- Whether a value is a name; it may be nil.
function arguments.is_name(value, most)
  if not value or #value > most or not string.find(value, '^%C+$') then
    return false
  elseif string.find(value, '[\128-\255]') and not arguments.is_utf8(value) then
    return false
  end
  if count == MOST then
    arguments.names, count = {}, 0
  end
  if #value <= SHORT then
    arguments.names[value], count = true, count + 1
  end
  return true
end

function accept.name(kind, value)
  return arguments.is_name(value, kind.most) and value or nil
end

-- Whether a value is an id; it may be nil.
function arguments.is_id(value, most)
  if not value or #value > most then
    return false
  elseif string.find(value, '^%w+$') then
    return true
  end
  return string.find(value, '^[!-~]+$') and arguments.has_own_key(value) or false
end

-- Whether the key of a job with this id, which may be nil, can be no other key. If there is a job under it, the text is an
-- id: it was looked at when the job was put.
function arguments.has_own_key(value)
  if not value then
    return false
  end
  local last = string.byte(value, -1)
  if last == 97 or last == 115 then -- an a or an s: the last letters of the reserved endings
    for _, ending in ipairs(RESERVED) do
      if string.sub(value, -#ending) == ending then
        return false
      end
    end
  end
  return true
end

function accept.label(kind, value)
  return value and #value <= kind.most and string.find(value, '^[%w.:_-]+$') and value or nil
end

function accept.id(kind, value)
  return arguments.is_id(value, kind.most) and value or nil
end

-- The policies for the failure of a dependency, and the number that stands for each.
arguments.policies = {block = 0, fail = 1, ignore = 2, cancel = 3}

-- What the dependencies on a request call it.
function arguments.after_request(id)
  return id .. ' request'
end

-- The id of the request that a dependency is on, or nil if it is on a job.
function arguments.awaited_request(dependency)
  return string.match(dependency, '^([%w.:_-]+) request$')
end

-- Read an edge to a request: `<id> request`, and the policy; nil if the text is none.
local function edge_to_request(value)
  local id, policy = string.match(value, '^([%w.:_-]+) request (%l+)$')
  id, policy = id or arguments.awaited_request(value), policy or 'block'
  if id and #id <= catalogue.request_name.most and arguments.policies[policy] then
    return arguments.after_request(id), policy, ''
  end
end

-- Read an edge: a job id, the policy for that job's failure, and a name or nothing; nil if the text is no edge. An edge
-- to a request has `<id> request` in place of the job id.
function arguments.edge(value)
  local request, its_policy, nameless = edge_to_request(value)
  if request then
    return request, its_policy, nameless
  end
  local jid, policy, name = string.match(value, '^([!-~]+) ([a-z]+) ?([!-~]*)$')
  local spaced = name and name == '' and string.sub(value, -1) == ' '
  if not jid or spaced or #name > 64 or not arguments.policies[policy] then
    return nil
  end
  return jid, policy, name
end

function accept.edge(_, value)
  local jid = string.find(value, ' ', 1, true) and arguments.edge(value) or value
  return (arguments.awaited_request(jid) or arguments.is_id(jid, catalogue.id.most)) and value or nil
end

function accept.awaited(_, value)
  local id = arguments.awaited_request(value)
  if id then
    return #id <= catalogue.request_name.most and value or nil
  end
  return arguments.is_id(value, catalogue.id.most) and value or nil
end

-- Read a text as a whole number within these bounds, or nil.
function arguments.whole(value, low, high)
  if value and #value <= 16 and (value == '0' or string.find(value, '^%-?[1-9]%d*$')) then
    local number = tonumber(value)
    return number >= low and number <= high and number or nil
  end
end

function accept.whole(kind, value)
  return arguments.whole(value, kind.low, kind.high)
end

-- Whether a value is a whole number that Lua keeps as text; it may be nil.
function arguments.is_digits(value)
  return value and #value <= 30 and (value == '0' or string.find(value, '^[1-9]%d*$')) and true or false
end

function accept.flag(_, value)
  if value == '1' or value == '0' then
    return value == '1'
  end
end

function accept.choice(kind, value)
  return value and kind.words[value] and value or nil
end

function arguments.accept(kind, value)
  return accept[kind.kind](kind, value)
end

function arguments.refuse(operation, argument)
  refusals.refuse('BAD_ARGUMENT', operation, argument)
end

-- The arguments up to the last one of this operation.
function arguments.only(args, at, last)
  local own = {}
  for i = at, last do
    own[i] = args[i]
  end
  return own
end

-- The patterns are anchored at both ends: an unanchored one is tried at every character, for ten times the cost.
local function take(operation, name, kind, value)
  local accepted = accept[kind.kind](kind, value)
  if accepted == nil then
    arguments.refuse(operation, name)
  end
  return accepted
end

-- Read consecutive nested operations from `at` on into a list; give the position after them.
local function take_operations(operation, name, decode, list, args, at, last)
  local text, size
  local count = #list
  repeat
    if args[at + 1] ~= text then
      text = args[at + 1]
      size = accept.whole(catalogue.size, text)
    end
    if not size or at + 1 + size > last then
      arguments.refuse(operation, name)
    end
    count = count + 1
    list[count] = decode(operation, args, at + 2, at + 1 + size)
    at = at + 2 + size
  until at >= last or args[at] ~= name
  return at
end

-- Read one `name value` pair at `at` into `op`; give the position after it.
local function take_pair(operation, spec, op, args, at, last)
  local name = args[at]
  local kind = spec.arguments[name == 'no' and args[at + 1] or name]
  if not kind or at == last or (name == 'no' and kind.kind ~= 'list') then
    arguments.refuse(operation, kind and name or 'option')
  end
  if name == 'no' then
    op[args[at + 1]] = {}
  elseif kind.kind == 'list' then
    local list = op[name]
    if not list or #list == 0 then
      list = {}
      op[name] = list
    end
    list[#list + 1] = take(operation, name, kind.item, args[at + 1])
  elseif kind.kind == 'operations' then
    op[name] = op[name] or {}
    return take_operations(operation, name, catalogue.operations[kind.of].decode, op[name], args, at, last)
  else
    op[name] = take(operation, name, kind, args[at + 1])
  end
  return at + 2
end

-- Read the `name value` pairs in args[at..last] into `op`; refuse the first bad one.
function arguments.named(operation, spec, op, args, at, last)
  op.named = true
  while at <= last do
    at = take_pair(operation, spec, op, args, at, last)
  end
  for i = 1, #spec.lists do
    local name = spec.lists[i]
    local kind, list = spec.arguments[name], op[name]
    if list and (#list > (kind.most or catalogue.most) or #list < kind.least) or not (list or kind.optional) then
      arguments.refuse(operation, name)
    end
  end
end

-- Checks of the arguments of qless commands, with qless's error sentences; twin of
-- qmodel/dialects/qless/arguments.py.

local qless_arguments = {}

local LONGEST_S = 316224000

-- End a call with a sentence, given in parts.
function qless_arguments.fail(...)
  qless_session.fail(table.concat({...}))
end

local function shown(value)
  return qless_texts.shown(value)
end

-- An argument, or refuse when it is missing.
function qless_arguments.need(command, name, value)
  if value == nil then
    qless_arguments.fail(command, '(): Arg "', name, '" missing')
  end
  return value
end

-- A job's id, or refuse.
function qless_arguments.need_jid(jid)
  return jid or qless_arguments.fail('Job(): no jid provided')
end

-- A queue's name, or refuse.
function qless_arguments.need_queue(queue)
  return queue or qless_arguments.fail('Queue(): no queue name provided')
end

-- Data, which must be JSON, or refuse.
function qless_arguments.need_data(command, data)
  if not qless_texts.is_json(data) or string.find(data, '^[ \t\r\n]*false[ \t\r\n]*$') then -- qless refuses `false` too
    qless_arguments.fail(command, '(): Arg "data" missing or not JSON: ', shown(data))
  end
  return data
end

-- A delay in milliseconds; a negative one counts as 0.
function qless_arguments.delay_of(command, text)
  local found = qless_texts.number(text)
  if not found then
    qless_arguments.fail(command, '(): Arg "delay" not a number: ', shown(text))
  elseif found > LONGEST_S then
    qless_arguments.fail(command, '(): Arg "delay" must be at most ', LONGEST_S, ' seconds: ', shown(text))
  end
  return found > 0 and qless_texts.milliseconds(found) or 0
end

-- A whole number, or refuse.
function qless_arguments.whole_of(command, name, text)
  return qless_texts.whole(text) or qless_arguments.fail(command, '(): Arg "', name, '" not a number: ', shown(text))
end

-- A JSON list of texts, or refuse.
function qless_arguments.strings_of(command, name, text)
  return qless_texts.strings(text) or qless_arguments.fail(command, '(): Arg "', name, '" not a JSON list of texts: ', shown(text))
end

-- Names and values; if a name is given twice, the last one counts.
function qless_arguments.options_of(command, options)
  if #options % 2 == 1 then
    qless_arguments.fail(command, '(): Odd number of additional args: ', #options)
  end
  local given = {}
  for i = 1, #options, 2 do
    given[options[i]] = options[i + 1]
  end
  return given
end

-- Write a list as the wire does.
function qless_arguments.add_list(args, name, list)
  for _, one in ipairs(list) do
    args[#args + 1] = name
    args[#args + 1] = one
  end
  if #list == 0 then
    args[#args + 1] = 'no'
    args[#args + 1] = name
  end
  return args
end

-- Write a name and a value as the wire does.
function qless_arguments.add(args, name, value)
  args[#args + 1] = name
  args[#args + 1] = value
end

-- The begin and the size of a page.
function qless_arguments.window(command, first, second, offset, count)
  return qless_arguments.whole_of(command, first, offset == nil and '0' or offset),
    qless_arguments.whole_of(command, second, count == nil and '25' or count)
end

-- The part of a list that a page names as Redis reads LIMIT: no negative size limits, and nothing is before 0.
function qless_arguments.limited(begin, size)
  return math.max(begin, 0), begin < 0 and 0 or size < 0 and catalogue.most or math.min(size, catalogue.most)
end

-- The part of a list that a page names as Redis reads a range: negative positions count from the end.
function qless_arguments.ranged(begin, size, total)
  local last = begin + size - 1
  begin = begin < 0 and math.max(begin + total, 0) or begin
  return begin, math.min(math.max((last < 0 and last + total or last) - begin + 1, 0), catalogue.most)
end

local function read(command, operation, name, begin, size)
  local args = {'offset', qless_texts.digits(begin), 'count', qless_texts.digits(size)}
  if name then
    table.insert(args, 1, name)
  end
  return qless_session.ask(command, operation, args)
end

-- Read a range of a list of ids, of a queue, group or tag, or of all; give its length, and the ids.
function qless_arguments.page(command, operation, name, begin, size)
  if begin < 0 or size < 1 then
    local total = read(command, operation, name, 0, 1)[1]
    begin, size = qless_arguments.ranged(begin, size, total)
    if size == 0 then
      return {total, {}}
    end
  end
  return read(command, operation, name, begin, math.min(size, catalogue.most))
end

-- Texts of the qless dialect, twin of qmodel/dialects/qless/texts.py: numbers, times and JSON, read and written the
-- same on both sides. Redis's cjson is not used: it accepts more than JSON, prints 14 digits, and cannot tell an empty
-- list from an empty object.

local qless_texts = {}

local LONGEST = 40
local WHOLE = 14
local MOST = 1e14
local DEPTH = 128

-- ---- numbers and times

-- Read a number, or nil.
function qless_texts.number(text)
  if text and #text <= LONGEST and string.find(text, '^%-?%d') then
    local rest = string.match(text, '^%-?%d+(.*)$')
    rest = string.match(rest, '^%.%d+(.*)$') or rest
    rest = string.match(rest, '^[eE][+-]?%d+(.*)$') or rest
    return rest == '' and tonumber(text) or nil
  end
end

-- Read a whole number below 10^14, in any notation.
function qless_texts.whole(text)
  local found = qless_texts.number(text)
  return found and math.abs(found) < MOST and found == math.floor(found) and found or nil
end

-- Read seconds below 10^14 as whole milliseconds.
function qless_texts.milliseconds(seconds)
  return math.floor(seconds * 1000 + 0.5)
end

-- Milliseconds as seconds, for JSON.
function qless_texts.seconds(moment)
  moment = tonumber(moment)
  local rest = moment % 1000
  if rest == 0 then
    return string.format('%d', moment / 1000)
  end
  return (string.gsub(string.format('%d.%03d', math.floor(moment / 1000), rest), '0+$', ''))
end

-- A number with 14 digits, for JSON.
function qless_texts.rounded(value)
  return string.format('%.14g', value)
end

function qless_texts.digits(number)
  return string.format('%d', number)
end

-- ---- JSON: reading

local ESCAPED = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/'}
local QUOTE, BACKSLASH, DELETE = 34, 92, 127

-- The end of a string that starts with the quote before `at`, or nil.
local function end_of_string(text, at)
  while true do
    at = string.find(text, '["\\%c]', at)
    local byte = at and string.byte(text, at)
    if byte == QUOTE then
      return at + 1
    elseif byte == BACKSLASH and ESCAPED[string.sub(text, at + 1, at + 1)] then
      at = at + 2
    elseif byte == BACKSLASH and string.find(text, '^u%x%x%x%x', at + 1) then
      at = at + 6
    elseif byte == DELETE then
      at = at + 1
    else
      return nil
    end
  end
end

local function end_of_number(text, at)
  at = string.match(text, '^%-?0()', at) or string.match(text, '^%-?[1-9]%d*()', at)
  at = at and (string.match(text, '^%.%d+()', at) or at)
  return at and (string.match(text, '^[eE][+-]?%d+()', at) or at)
end

local function after_blanks(text, at)
  return string.match(text, '^[ \t\r\n]*()', at)
end

local WORDS = {t = 'true', f = 'false', n = 'null'}
local end_of_value

-- The end of a bracketed list, or nil; `member` finds the end of one member.
local function end_of_parts(text, at, close, member, depth)
  at = after_blanks(text, at)
  if string.sub(text, at, at) == close then
    return at + 1
  end
  while true do
    at = member(text, at, depth)
    at = at and after_blanks(text, at)
    local sign = at and string.sub(text, at, at)
    if sign == close then
      return at + 1
    elseif sign ~= ',' then
      return nil
    end
    at = after_blanks(text, at + 1)
  end
end

local function end_of_pair(text, at, depth)
  at = string.sub(text, at, at) == '"' and end_of_string(text, at + 1)
  at = at and after_blanks(text, at)
  return at and string.sub(text, at, at) == ':' and end_of_value(text, after_blanks(text, at + 1), depth)
end

end_of_value = function(text, at, depth)
  local sign = string.sub(text, at, at)
  if sign == '"' then
    return end_of_string(text, at + 1)
  elseif sign == '[' or sign == '{' then
    if depth == DEPTH then
      return nil
    end
    local close, member = sign == '[' and ']' or '}', sign == '[' and end_of_value or end_of_pair
    return end_of_parts(text, at + 1, close, member, depth + 1)
  end
  local word = WORDS[sign]
  if word then
    return string.sub(text, at, at + #word - 1) == word and at + #word or nil
  end
  return end_of_number(text, at)
end

-- Whether a text is JSON (RFC 8259).
function qless_texts.is_json(text)
  local at = text and end_of_value(text, after_blanks(text, 1), 0)
  return at ~= nil and at ~= false and after_blanks(text, at) == #text + 1
end

-- Whether a text is a JSON object.
function qless_texts.is_object(text)
  return string.find(text, '^[ \t\r\n]*{') ~= nil and qless_texts.is_json(text)
end

-- A code point in UTF-8.
local function utf8(code)
  local function rest(shift)
    return string.char(128 + math.floor(code / shift) % 64)
  end
  if code < 128 then
    return string.char(code)
  elseif code < 2048 then
    return string.char(192 + math.floor(code / 64)) .. rest(1)
  elseif code < 65536 then
    return string.char(224 + math.floor(code / 4096)) .. rest(64) .. rest(1)
  end
  return string.char(240 + math.floor(code / 262144)) .. rest(4096) .. rest(64) .. rest(1)
end

-- The character of the escape at `at`, and its end; or nil for half of a surrogate pair.
local function escape(text, at)
  local digits = string.match(text, '^u(%x%x%x%x)', at)
  if not digits then
    return ESCAPED[string.sub(text, at, at)], at + 1
  end
  local code = tonumber(digits, 16)
  if code < 55296 or code > 57343 then
    return utf8(code), at + 5
  end
  local low = tonumber(string.match(text, '^\\u(%x%x%x%x)', at + 5) or '0', 16)
  if code > 56319 or low < 56320 or low > 57343 then
    return nil
  end
  return utf8(65536 + (code - 55296) * 1024 + low - 56320), at + 11
end

-- A string that is known to be well-formed, without its quotes; or nil.
local function unescaped(text)
  local parts, at = {}, 1
  while true do
    local found = string.find(text, '\\', at, true)
    parts[#parts + 1] = string.sub(text, at, (found or 0) - 1)
    if not found then
      return table.concat(parts)
    end
    parts[#parts + 1], at = escape(text, found + 1)
    if not at then
      return nil
    end
  end
end

-- Read a JSON list of texts and whole numbers (`{}` is an empty one), or nil.
function qless_texts.strings(text)
  if not qless_texts.is_json(text) then
    return nil
  elseif string.find(text, '^[ \t\r\n]*{[ \t\r\n]*}') then
    return {}
  end
  local at = string.match(text, '^[ \t\r\n]*%[[ \t\r\n]*()')
  local list = at and {}
  while at and string.find(text, '^["%-%d]', at) do
    local stop = end_of_value(text, at, 0)
    local word = string.sub(text, at, stop - 1)
    if string.sub(word, 1, 1) == '"' then
      list[#list + 1] = unescaped(string.sub(word, 2, -2))
    elseif #word <= WHOLE and string.find(word, '^%-?%d+$') and word ~= '-0' then
      list[#list + 1] = word
    else
      return nil
    end
    if not list[#list] then
      return nil
    end
    at = string.match(text, '^[ \t\r\n]*,?[ \t\r\n]*()', stop)
  end
  return at and string.sub(text, at, at) == ']' and list or nil
end

-- ---- JSON: writing

local function escaped(character)
  for name, of in pairs(ESCAPED) do
    if of == character then
      return '\\' .. name
    end
  end
  return character == '\127' and character or string.format('\\u%04x', string.byte(character))
end

local escapes -- a character -> its escape, as soon as one was needed: data may have a million of them

function qless_texts.quote(text)
  escapes = escapes or setmetatable({}, {__index = function(known, character)
    known[character] = escaped(character)
    return known[character]
  end})
  return '"' .. string.gsub(text, '[%c"\\]', escapes) .. '"'
end

local NO_KLASS = '(none)' -- the engine's klass of jobs with an empty one, as an anonymous class of Ruby gives it

-- The engine's klass of one of qless.
function qless_texts.stored_klass(klass)
  return klass == '' and NO_KLASS or klass
end

-- The klass of qless of one of the engine.
function qless_texts.shown_klass(klass)
  return klass == NO_KLASS and '' or klass
end

-- A JSON object from names, each followed by its value, which is JSON.
function qless_texts.record(pairs_)
  local parts = {}
  for i = 1, #pairs_, 2 do
    parts[#parts + 1] = qless_texts.quote(pairs_[i]) .. ':' .. pairs_[i + 1]
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- A JSON object from names, each followed by its value, which is text.
function qless_texts.facts(pairs_)
  local parts = {}
  for i = 1, #pairs_, 2 do
    parts[i], parts[i + 1] = pairs_[i], qless_texts.quote(pairs_[i + 1])
  end
  return qless_texts.record(parts)
end

-- A JSON list of values, which are JSON; an empty one is `{}`.
function qless_texts.listed(values)
  return values[1] and '[' .. table.concat(values, ',') .. ']' or '{}'
end

-- A JSON list of texts.
function qless_texts.quoted(texts)
  local parts = {}
  for i, text in ipairs(texts) do
    parts[i] = qless_texts.quote(text)
  end
  return qless_texts.listed(parts)
end

-- An argument as a sentence may repeat it.
function qless_texts.shown(value)
  if value == nil then
    return 'nil'
  end
  return #value <= 60 and string.find(value, '^[ -~]*$') and value or '...'
end

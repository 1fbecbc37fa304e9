-- Subjects and patterns: what a message is about, and which messages a subscription matches; and names with wildcards.
-- The rules are described in qmodel/model/state/subjects.py. They are compared segment by segment and never become Lua patterns.

local subjects = {}

local ONE = '*'
local MORE = '>'

-- The segments of a subject or a pattern.
function subjects.split(text)
  local segments, at = {}, 1
  local dot = string.find(text, '.', 1, true)
  while dot do
    segments[#segments + 1] = string.sub(text, at, dot - 1)
    at = dot + 1
    dot = string.find(text, '.', at, true)
  end
  segments[#segments + 1] = string.sub(text, at)
  return segments
end

local function is_plain(segment)
  return segment ~= '' and not string.find(segment, '[*>]')
end

-- Refuse a text that is not a subject.
function subjects.check(subject)
  for _, segment in ipairs(subjects.split(subject)) do
    if not is_plain(segment) then
      refusals.refuse('BAD_SUBJECT', subject)
    end
  end
end

-- Refuse a text that is not a pattern.
function subjects.check_pattern(pattern)
  local segments = subjects.split(pattern)
  for place, segment in ipairs(segments) do
    local last = place == #segments
    if not (is_plain(segment) or segment == ONE or segment == MORE and last) then
      refusals.refuse('BAD_PATTERN', pattern, segment)
    end
  end
end

local function fits(pattern, subject)
  for place, segment in ipairs(pattern) do
    if not subject[place] then
      return false
    end
    if segment == MORE then
      return true
    end
    if segment ~= ONE and segment ~= subject[place] then
      return false
    end
  end
  return #pattern == #subject
end

-- The segments of each of some patterns.
function subjects.split_all(patterns)
  local all = {}
  for i, pattern in ipairs(patterns) do
    all[i] = subjects.split(pattern)
  end
  return all
end

-- Whether any of these patterns matches a subject; all are given as segments.
function subjects.matches(patterns, subject)
  for _, pattern in ipairs(patterns) do
    if fits(pattern, subject) then
      return true
    end
  end
  return false
end

-- Whether a name matches a text in which each `*` stands for any characters, also none. Parts are found from left to
-- right, so no text makes the comparison expensive.
function subjects.like(wildcard, name)
  local star = string.find(wildcard, ONE, 1, true)
  if not star then
    return wildcard == name
  end
  local at = star - 1
  if string.sub(name, 1, at) ~= string.sub(wildcard, 1, at) then
    return false
  end
  local from = star + 1
  star = string.find(wildcard, ONE, from, true)
  while star do
    local _, found = string.find(name, string.sub(wildcard, from, star - 1), at + 1, true)
    if not found then
      return false
    end
    at, from = found, star + 1
    star = string.find(wildcard, ONE, from, true)
  end
  local last = string.sub(wildcard, from)
  return #name - at >= #last and string.sub(name, #name - #last + 1) == last
end

-- Cursors: reading a list of jobs in bounded parts.
--
-- A cursor is the position of the job that was examined last: its list, and the numbers that order it there. So a
-- search continues after that position, whatever has been added or removed since; an index would skip jobs when earlier
-- ones are removed.

local cursors = {}

local CHUNK = 100 -- how many records are read with one command

-- Every kind of list, and how many numbers order its jobs.
local NUMBERS = {
  held = 1, tag = 1, ready = 3, scheduled = 2, throttled = 2, depends = 2, locks = 2, completed = 2, group = 2,
}

local PARTS = {
  ready = '-work', scheduled = '-scheduled', throttled = '-throttled', depends = '-depends', locks = '-locks',
}

-- Write a cursor as text.
function cursors.write(kind, name, key)
  local words = {kind}
  for _, number in ipairs(key) do
    words[#words + 1] = number == -math.huge and '-inf' or store.text(number)
  end
  if kind == 'group' then
    words[#words + 1] = name
  end
  return table.concat(words, ' ')
end

-- The first words of a text, and the rest of it as the last.
local function split(text, most)
  local words, at = {}, 1
  local stop = string.find(text, ' ', at, true)
  while stop and #words < most do
    words[#words + 1] = string.sub(text, at, stop - 1)
    at = stop + 1
    stop = string.find(text, ' ', at, true)
  end
  words[#words + 1] = string.sub(text, at)
  return words
end

local function number_of(word)
  return word == '-inf' and -math.huge or arguments.whole(word, -999999999999999, 999999999999999)
end

-- Read a cursor from text; nil if the text is not one.
function cursors.read(text)
  local kind = split(text, 1)[1]
  local count = NUMBERS[kind]
  local words = split(text, (count or 0) + 1)
  local name = words[(count or 0) + 2]
  if not count or #words <= count or (kind == 'group') ~= (name ~= nil) or name == '' then
    return nil
  end
  local key = {}
  for i = 1, count do
    key[i] = number_of(words[i + 1])
    if not key[i] then
      return nil
    end
  end
  return {kind = kind, name = name, behind = key}
end

local function is_behind(key, other)
  for i = 1, #key do
    if key[i] ~= other[i] then
      return key[i] > other[i]
    end
  end
  return false
end

-- The numbers and the id of a job in a sorted set.
local function place(kind, member, score)
  local moment = score == '-inf' and -math.huge or tonumber(score)
  if kind == 'tag' then
    return {moment}, member
  elseif kind == 'ready' then
    return {moment, keys.ready_rank(member)}, keys.ready_jid_of(member)
  end
  return {moment, tonumber(string.sub(member, 1, 14))}, keys.jid_of(member)
end

local function key_of(kind, name)
  if kind == 'tag' then
    return keys.tag(name)
  elseif kind == 'group' then
    return keys.group(name)
  end
  return kind == 'completed' and keys.completed or keys.queue(name, PARTS[kind])
end

-- How many members of a sorted set come up to a position.
local function rank(kind, set, after)
  local first, last = 0, writes.fetch('ZCARD', set)
  while first < last do
    local middle = math.floor((first + last) / 2)
    local found = writes.fetch('ZRANGE', set, middle, middle, 'WITHSCORES')
    if is_behind(place(kind, found[1], found[2]), after) then
      last = middle
    else
      first = middle + 1
    end
  end
  return first
end

-- The same for the jobs that a worker holds, which are not in a sorted set.
local function held(name, after, most)
  local page, jids = {}, {}
  local seqs, of = workers.claims(name)
  for i = 1, #seqs do
    local seq = seqs[i]
    if #page < math.min(most, CHUNK) and (not after or seq > after[1]) then
      page[#page + 1], jids[#jids + 1] = {{seq}, of[seq]}, of[seq]
    end
  end
  budget.reach(jids)
  return page
end

-- The first jobs of a list after a position: the numbers of each, and its id; only a part of them if there are many, and
-- none that comes after a moment, if one is given.
function cursors.page(kind, name, after, most, latest)
  if kind == 'held' then
    return held(name, after, most)
  end
  local set, page, jids = key_of(kind, name), {}, {}
  local first = after and rank(kind, set, after) or 0
  local found = writes.fetch('ZRANGE', set, first, first + math.min(most, CHUNK) - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local key, jid = place(kind, found[i], found[i + 1])
    if latest and key[1] > latest then
      break
    end
    page[#page + 1], jids[#jids + 1] = {key, jid}, jid
  end
  budget.reach(jids)
  return page
end

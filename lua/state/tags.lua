-- Tags: the jobs of each tag, in the order in which they were tagged. In a record the tags are separated by a byte that
-- no text in UTF-8 contains.

local tags = {}

local BETWEEN = '\255'

tags.BETWEEN_TAGS = '\31' -- in the fact of an event; no tag has a control character

-- A job's tags, in order.
function tags.of(job)
  local found = {}
  for tag in string.gmatch(job.tags, '[^\255]+') do
    found[#found + 1] = tag
  end
  return found
end

-- Whether a job has a tag.
function tags.has(job, tag)
  return string.find(BETWEEN .. job.tags .. BETWEEN, BETWEEN .. tag .. BETWEEN, 1, true) ~= nil
end

-- Refuse more than 1000 tags of a job or a recurring job: all are removed in the step that deletes it.
function tags.check_room(whose, some, more)
  local had, size = {}, 0
  for _, list in ipairs({some, more}) do
    for _, tag in ipairs(list) do
      size = size + (had[tag] and 0 or 1)
      had[tag] = true
    end
  end
  if size > catalogue.most then
    refusals.refuse('LIMIT_REACHED', 'tags of ' .. whose, catalogue.most)
  end
end

local fewer = false -- whether the step has taken a tag from a job

-- The counts of a step are added up, and written at its end.
local function count(tag, by)
  if not store.tagged then
    store.tagged, fewer = {}, false
  end
  store.tagged[tag] = (store.tagged[tag] or 0) + by
  fewer = fewer or by < 0
end

-- Write the counts of the step; drop the tags that no job has.
function tags.flush()
  for tag, by in pairs(store.tagged) do
    if by ~= 0 then
      writes.put_off('ZINCRBY', keys.tags, -by, tag)
    end
  end
  if fewer then
    writes.put_off('ZREMRANGEBYSCORE', keys.tags, '0', '+inf')
  end
end

-- Enter a job into a tag's list.
local function list_(job, tag)
  store.add(keys.tag(tag), store.last(), job.jid)
  count(tag, 1)
end

-- Remove a job from a tag's list.
local function unlist(job, tag)
  store.remove(keys.tag(tag), job.jid)
  count(tag, -1)
end

-- Add a new tag to a job. The current sequence is the job's position in the tag.
function tags.add(job, tag)
  job.tags = job.tags == '' and tag or job.tags .. BETWEEN .. tag
  list_(job, tag)
end

-- Enter a new job, that was put with this sequence, into the list of each of its tags, after its record was written.
function tags.list_plain(found, id, jid)
  for i = 1, #found do
    writes.last('ZADD', keys.tag(found[i]), id, jid)
    writes.last('ZINCRBY', keys.tags, '-1', found[i])
  end
end

-- Remove a tag from a job that has it.
function tags.remove(job, tag)
  local text = BETWEEN .. job.tags .. BETWEEN
  local at, last = string.find(text, BETWEEN .. tag .. BETWEEN, 1, true)
  job.tags = string.sub(text, 2, at - 1) .. string.sub(text, at == 1 and last + 1 or last, -2)
  unlist(job, tag)
end

-- Give a job exactly these tags, in this order; those that it had keep their positions.
function tags.assign(job, list)
  local wanted, order = {}, {}
  for _, tag in ipairs(list) do
    if not wanted[tag] then
      wanted[tag] = true
      order[#order + 1] = tag
    end
  end
  local had = {}
  for _, tag in ipairs(tags.of(job)) do
    had[tag] = true
    if not wanted[tag] then
      unlist(job, tag)
    end
  end
  for _, tag in ipairs(order) do
    if not had[tag] then
      list_(job, tag)
    end
  end
  job.tags = table.concat(order, BETWEEN)
end

-- Give the tags of a job that is put, for the event: those that the put says, or else those that it had.
function tags.fact(job, given)
  if not given then
    return job.tags ~= '' and string.gsub(job.tags, BETWEEN, tags.BETWEEN_TAGS) or nil
  end
  local wanted, order = {}, {}
  for _, tag in ipairs(given) do
    if not wanted[tag] then
      wanted[tag] = true
      order[#order + 1] = tag
    end
  end
  return order[1] and table.concat(order, tags.BETWEEN_TAGS) or nil
end

-- Give these tags to a job that is only shown; no tag will list it.
function tags.pretend(job, list)
  job.tags = table.concat(list, BETWEEN)
end

-- Remove all tags from a job.
function tags.drop(job)
  for _, tag in ipairs(tags.of(job)) do
    unlist(job, tag)
  end
  job.tags = ''
end

-- The tags of at least two jobs, most used first, then by name.
function tags.top(offset, count_)
  local found = writes.fetch('ZRANGEBYSCORE', keys.tags, '-inf', -2, 'WITHSCORES', 'LIMIT', offset, count_)
  local page = {}
  for i = 1, #found, 2 do
    page[#page + 1] = {found[i], -found[i + 1]}
  end
  return page
end

-- How many jobs have a tag, and a page of them.
function tags.page(tag, offset, count_)
  local key = keys.tag(tag)
  return writes.fetch('ZCARD', key), writes.fetch('ZRANGE', key, offset, offset + count_ - 1)
end

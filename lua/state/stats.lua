-- Statistics by queue and UTC day: how long jobs waited and ran, and how many failed. The counts and the bins are
-- described in qmodel/model/state/stats.py.
--
-- A duration is first appended to a list, which costs a tenth of reading, changing and writing the folded statistics.
-- When 128 are pending, they are folded in order, so that mean and variance are the same to the last bit as if each had
-- been folded at once; a reader folds the pending ones for itself. If a step has 64 and more, they are folded at once,
-- behind those that are pending.
--
-- Folded statistics are one text: count, mean, squares, and `bin:count` for each bin that is not empty.
--
-- A pending run carries its minute of the day, as `<duration> <minute>`, and is counted in its minute when it is
-- folded: so the counts by minute cost a completion nothing.
--
-- What is counted by a tag or a worker is one field of a hash: the folded waits, a newline, and the folded runs. The
-- durations of workers are folded in at the end of the step. Those of tags are appended to a list as well: `w` or `r`,
-- how many tags may be counted, the duration, and the tags.

local stats = {}

local DAY_MS = 86400000
local MINUTE_MS = 60000
local RUN_MOST = 10000000000
local BINS = 287
local NONE = {}
local FOLD = 128
local MANY = 64
local FOLD_TAGS = 512 -- more, because each fold reads and writes every tag that it meets
local SWEEP = 10
local TAGS = 8
local FIRST_TAGS = '^[^\t]+\t[^\t]+\t[^\t]+\t[^\t]+\t[^\t]+\t[^\t]+\t[^\t]+\t[^\t]+' -- as many as that
local CHUNK = 1000 -- how many fields of a hash are read at once

-- The histogram bin of a duration in milliseconds.
local function bin_of(duration)
  local seconds = math.floor(duration / 1000)
  if seconds < 60 then
    return seconds
  elseif seconds < 3600 then
    return 59 + math.floor(seconds / 60)
  elseif seconds < 86400 then
    return 115 + math.floor(seconds / 900)
  elseif seconds < 259200 then
    return 187 + math.floor(seconds / 3600)
  end
  return math.min(256 + math.floor(seconds / 86400), BINS - 1)
end

-- The start of the day that contains a time.
function stats.day_of(at)
  return at - at % DAY_MS
end

-- The minute of the day that contains a time.
local function minute_of(at)
  return math.floor(at % DAY_MS / MINUTE_MS)
end

local said, said_of -- a minute as text after the duration of a run, and when it began

local function behind(now)
  local began = now - now % MINUTE_MS
  if began ~= said_of then
    said, said_of = ' ' .. minute_of(now), began
  end
  return said
end

local function member(day, queue)
  return day .. ':' .. queue
end

-- Delete a key of a day, with what this step has counted in it.
local function delete(kind, day, queue)
  local key = keys.stats(kind, day, queue)
  if store.counts then
    store.counts[key] = nil
  end
  writes.delete(key)
end

local function drop(day, queue)
  queues.forget_pending(queue)
  for _, kind in ipairs({'wait', 'run', 'wait-new', 'run-new', 'stats', 'minutes', 'tags', 'tags-new', 'workers'}) do
    delete(kind, day, queue)
  end
end

-- ---- durations

local EMPTY = '0\t0\t0\t'

local function decode(text)
  local count, mean, squares, bins = string.match(text, '^(%d+)\t([^\t]+)\t([^\t]+)\t(.*)$')
  local sample = {count = tonumber(count), mean = tonumber(mean), squares = tonumber(squares), bins = {}}
  for bin, of in string.gmatch(bins, '(%d+):(%d+)') do
    sample.bins[tonumber(bin)] = tonumber(of)
  end
  return sample
end

-- Read pending durations as numbers; and, for runs, the minute of each, which is mostly that of the run before.
local function taken_apart(kind, pending)
  local durations, minutes, tail, minute, text, number = store.list(#pending), {}, ' ', '', nil, nil
  for i = 1, #pending do
    if pending[i] ~= text then
      text = pending[i]
      number = text
      if kind == 'run' then
        if string.sub(text, -#tail) ~= tail then
          tail, minute = string.match(text, '( (%d+))$')
        end
        number = string.sub(text, 1, -1 - #tail)
      end
      number = number + 0
    end
    durations[i], minutes[i] = number, minute
  end
  return durations, minutes
end

-- Count one duration.
local function fold(sample, durations)
  local count, mean, squares, bins = sample.count, sample.mean, sample.squares, sample.bins
  for i = 1, #durations do
    local duration = durations[i]
    count = count + 1
    local delta = duration - mean
    mean = mean + delta / count
    squares = squares + delta * (duration - mean)
    local bin = duration < MINUTE_MS and (duration - duration % 1000) / 1000 or bin_of(duration)
    bins[bin] = (bins[bin] or 0) + 1
  end
  sample.count, sample.mean, sample.squares = count, mean, squares
  return sample
end

local function encode(sample)
  local bins = {}
  for bin, of in pairs(sample.bins) do
    bins[#bins + 1] = bin .. ':' .. of
  end
  local text = string.format('%d\t%.17g\t%.17g\t', sample.count, sample.mean, sample.squares)
  return text .. table.concat(bins, ' ')
end

local function save(kind, day, queue, sample)
  writes.put_off('SET', keys.stats(kind, day, queue), encode(sample))
end

-- Fold in the pending durations, and behind them more, if they are given; give all, and the minutes of runs.
local function fold_pending(kind, day, queue, more)
  local key = keys.stats(kind .. '-new', day, queue)
  local pending = writes.fetch('LRANGE', key, 0, -1)
  local size = #pending
  if size > 0 then
    writes.delete(key)
    for i = 1, more and #more or 0 do
      pending[size + i] = more[i]
    end
  end
  local durations, minutes = taken_apart(kind, size > 0 and pending or more or NONE)
  if durations[1] then
    save(kind, day, queue, fold(decode(writes.fetch('GET', keys.stats(kind, day, queue)) or EMPTY), durations))
  end
  return durations, minutes
end

-- Group runs by the minute of the day, which is text: how many, and for how long.
local function by_minute(durations, minutes)
  local completed, run_ms = {}, {}
  for i = 1, #durations do
    local minute, duration = minutes[i], durations[i]
    completed[minute] = (completed[minute] or 0) + 1
    run_ms[minute] = (run_ms[minute] or 0) + (duration < RUN_MOST and duration or RUN_MOST)
  end
  return completed, run_ms
end

-- Count runs in their minutes.
local function count_minutes(day, queue, durations, minutes)
  local key = keys.stats('minutes', day, queue)
  local completed, run_ms = by_minute(durations, minutes)
  for minute, many in pairs(completed) do
    writes.put_off('HINCRBY', key, minute .. 'c', many)
    writes.put_off('HINCRBY', key, minute .. 'm', run_ms[minute])
  end
end

-- Delete the minutes of a few days that are older than metrics-history; pending runs lose theirs.
local function sweep_minutes(today)
  local last = today - config.value('metrics-history') * MINUTE_MS - DAY_MS
  for _, old in ipairs(writes.fetch('ZRANGEBYSCORE', keys['s-minutes'], '-inf', last, 'LIMIT', 0, SWEEP)) do
    local day, queue = string.match(old, '^(%d+):(.*)$')
    fold_pending('run', day, queue)
    delete('minutes', day, queue)
    writes.put_off('ZREM', keys['s-minutes'], old)
  end
end

-- Whether a day of a queue is among the days with statistics; a step on many jobs asks once.
local function is_entered(day, queue)
  local days = store.days or {}
  store.days = days
  local name = member(day, queue)
  if days[name] == nil then
    days[name] = writes.fetch('ZSCORE', keys.s, name) and true
  end
  return days[name]
end

-- Enter a day of a queue among the days with statistics; if it is new, delete a few that are too old.
local function enter(day, queue)
  local key = keys.s
  if is_entered(day, queue) then
    return
  end
  local oldest = day - config.value('stats-history') * DAY_MS
  for _, old in ipairs(writes.fetch('ZRANGEBYSCORE', key, '-inf', '(' .. oldest, 'LIMIT', 0, SWEEP)) do
    local old_day, old_queue = string.match(old, '^(%d+):(.*)$')
    drop(old_day, old_queue)
    store.days[old] = false
    writes.put_off('ZREM', key, old)
    writes.put_off('ZREM', keys['s-minutes'], old)
  end
  sweep_minutes(day)
  store.days[member(day, queue)] = true
  writes.put_off('ZADD', key, day, member(day, queue))
  writes.put_off('ZADD', keys['s-minutes'], day, member(day, queue))
end

-- Fold in the pending durations of a day, and behind them more, if they are given.
local function fold_day(kind, day, queue, more)
  local durations, minutes = fold_pending(kind, day, queue, more)
  if kind == 'run' then
    count_minutes(day, queue, durations, minutes)
  end
end

-- Follow up when `count` durations were appended to a day, which then has `size`: enter the day if they are the first,
-- and fold when enough are pending.
local function appended(kind, day, queue, size, count_)
  if size == count_ then
    enter(day, queue)
  end
  if size >= FOLD then
    fold_day(kind, day, queue)
  end
end

-- Append the durations of a step to the list of a day, or fold them, if they are many; give how many are pending then.
local function append_all(kind, day, queue, key, durations)
  if #durations >= MANY then
    enter(day, queue)
    fold_day(kind, day, queue, durations)
    return 0
  end
  local size = writes.append(key, nil, durations)
  appended(kind, day, queue, size, #durations)
  return size
end

-- Append a duration, or buffer it: those of one operation on many jobs are appended together at its end.
local function add(kind, now, queue, text)
  local day = now - now % DAY_MS
  local key = keys.pending(kind, day, queue)
  if not store.many then
    return appended(kind, day, queue, writes.append(key, text), 1)
  end
  local all = store.durations or {}
  store.durations = all
  local of = all[key]
  if of then
    of.durations[#of.durations + 1] = text
  else
    all[key] = {kind = kind, day = day, queue = queue, durations = {text}}
  end
end

-- Buffer a duration of a worker on a day.
local function part(kind, now, queue, name, duration)
  local key = keys.stats('workers', stats.day_of(now), queue)
  local all = store.parts or {}
  store.parts = all
  local of = all[key] or {names = {}, durations = {}}
  all[key] = of
  if not of.durations[name] then
    of.names[#of.names + 1] = name
    of.durations[name] = {wait = {}, run = {}}
  end
  local durations = of.durations[name][kind]
  durations[#durations + 1] = duration
end

-- A duration, which is text, with the tags that it counts for, with tabs between.
local function entry_of(kind, most, text, found)
  return (kind == 'wait' and 'w' or 'r') .. store.text(most) .. ' ' .. text .. '\t' .. found
end

-- Count a duration by the parts of a day to which a job of a worker belongs.
local function parts(kind, now, job, worker, duration)
  local most = job.tags ~= '' and config.value('stats-tags') or 0
  if most > 0 then
    local day, all = stats.day_of(now), store.by_tags or {}
    local of = all[member(day, job.queue)] or {day = day, queue = job.queue, entries = {}}
    store.by_tags, all[member(day, job.queue)] = all, of
    local found = tags.of(job)
    local listed = table.concat(found, '\t', 1, math.min(#found, TAGS))
    of.entries[#of.entries + 1] = entry_of(kind, most, store.text(duration), listed)
  end
  if config.value('stats-workers') > 0 then
    part(kind, now, job.queue, worker, duration)
  end
end

-- Read the parts of a day with these names.
local function read_parts(key, names)
  local texts = {}
  for first = 1, #names, CHUNK do
    local last = math.min(first + CHUNK - 1, #names)
    for i, text in ipairs(writes.fetch('HMGET', key, unpack(names, first, last))) do
      texts[first + i - 1] = text
    end
  end
  return texts
end

-- Fold durations in a part of a day, which is text.
local function fold_part(text, durations)
  local wait, run = string.match(text, '^(.*)\n(.*)$')
  if durations.wait[1] then
    wait = encode(fold(decode(wait), durations.wait))
  end
  if durations.run[1] then
    run = encode(fold(decode(run), durations.run))
  end
  return wait .. '\n' .. run
end

-- Fold durations in the parts of a day; make new ones, up to the most that are counted.
local function fold_parts(key, most, names, durations)
  local texts, fields, room = read_parts(key, names), {}, nil
  for i, name in ipairs(names) do
    local text = texts[i]
    if not text then
      room = room or most - writes.fetch('HLEN', key)
      if room > 0 then
        room, text = room - 1, EMPTY .. '\n' .. EMPTY
      end
    end
    if text then
      fields[#fields + 1], fields[#fields + 2] = name, fold_part(text, durations[name])
    end
  end
  if fields[1] then
    writes.put_off_many('HSET', key, fields, #fields)
  end
end

-- The names in a list with tabs between; those that were not met are added to all.
local function names_in(listed, met, every)
  local found = {}
  for name in string.gmatch(listed, '[^\t]+') do
    found[#found + 1] = name
    if not met[name] then
      met[name], every[#every + 1] = true, name
    end
  end
  return found
end

-- Read pending durations with their tags: each as its kind, the most tags that may be counted, the duration and the tags;
-- and all tags.
local function with_tags(entries)
  local heads, met, every, lists = {}, {}, {}, {}
  for i, entry in ipairs(entries) do
    local kind, most, duration, listed = string.match(entry, '^(.)(%d+) (%d+)\t(.*)$')
    if not lists[listed] then
      lists[listed] = names_in(listed, met, every)
    end
    local found = lists[listed]
    heads[i] = {kind == 'w' and 'wait' or 'run', tonumber(most), tonumber(duration), found}
  end
  return heads, every
end

-- Group pending durations by their tags, the first ones up to the most that may be counted: the tags, what was counted
-- by each before, and the durations.
local function by_tag(key, entries)
  local heads, every = with_tags(entries)
  local many, texts, names, durations = entries[1] and writes.fetch('HLEN', key) or 0, {}, {}, {}
  for i, text in ipairs(read_parts(key, every)) do
    texts[every[i]] = text
  end
  for _, head in ipairs(heads) do
    for _, name in ipairs(head[4]) do
      if not durations[name] and (texts[name] or many < head[2]) then
        many = texts[name] and many or many + 1
        names[#names + 1], durations[name] = name, {wait = {}, run = {}}
      end
      if durations[name] then
        local of = durations[name][head[1]]
        of[#of + 1] = head[3]
      end
    end
  end
  return names, texts, durations
end

-- Fold in the pending durations of tags.
local function fold_tags(day, queue)
  local key, pending = keys.stats('tags', day, queue), keys.stats('tags-new', day, queue)
  local names, texts, durations = by_tag(key, writes.fetch('LRANGE', pending, 0, -1))
  writes.delete(pending)
  local fields = {}
  for i, name in ipairs(names) do
    fields[2 * i - 1], fields[2 * i] = name, fold_part(texts[name] or EMPTY .. '\n' .. EMPTY, durations[name])
  end
  if fields[1] then
    writes.put_off_many('HSET', key, fields, #fields)
  end
end

-- Count how long a popped job waited.
function stats.waited(now, job, worker, duration)
  add('wait', now, job.queue, store.text(duration))
  parts('wait', now, job, worker, duration)
end

-- Count how long a completed job ran.
function stats.ran(now, job, worker, duration)
  add('run', now, job.queue, store.text(duration) .. behind(now))
  parts('run', now, job, worker, duration)
end

-- Count a duration, which is text, by the tags of a plain job, if it has any, as they stand in its record.
local function tagged_one(kind, day, queue, found, text)
  local most = found ~= '' and config.value('stats-tags') or 0
  if most == 0 then
    return
  end
  local listed, between = string.gsub(found, '\255', '\t')
  if between >= TAGS then
    listed = string.match(listed, FIRST_TAGS)
  end
  if writes.append(keys.pending('tags', day, queue), entry_of(kind, most, text, listed)) >= FOLD_TAGS then
    fold_tags(day, queue)
  end
end

-- Count how long a popped job waited, and how long a completed one ran, whose duration is text; nothing is buffered. With
-- the job's record and the length of its rare part.
function stats.waited_one(now, queue, text, record, more)
  local day = now - now % DAY_MS
  local key = keys.pending('wait', day, queue)
  local size = writes.append(key, text)
  queues.know_pending(queue, 'wait', day, key, size)
  if size == 1 or size >= FOLD then
    appended('wait', day, queue, size, 1)
  end
  if more ~= '0' then
    tagged_one('wait', day, queue, plain_records.tags_of(record, more), text)
  end
end

function stats.ran_one(now, queue, text, record, more)
  local day = now - now % DAY_MS
  local key = keys.pending('run', day, queue)
  local size = writes.append(key, text .. behind(now))
  queues.know_pending(queue, 'run', day, key, size)
  if size == 1 or size >= FOLD then
    appended('run', day, queue, size, 1)
  end
  if more ~= '0' then
    tagged_one('run', day, queue, plain_records.tags_of(record, more), text)
  end
end

-- What stands behind the duration of a run.
stats.behind = behind

-- Append the buffered durations, and write the counts of the step.
function stats.flush()
  for key, of in pairs(store.durations or NONE) do
    append_all(of.kind, of.day, of.queue, key, of.durations)
  end
  for key, of in pairs(store.parts or NONE) do
    fold_parts(key, config.value('stats-workers'), of.names, of.durations)
  end
  for _, of in pairs(store.by_tags or NONE) do
    if writes.append(keys.stats('tags-new', of.day, of.queue), nil, of.entries) >= FOLD_TAGS then
      fold_tags(of.day, of.queue)
    end
  end
  for key, fields in pairs(store.counts or NONE) do
    for field, by in pairs(fields) do
      writes.put_off('HINCRBY', key, field, by)
    end
  end
end

-- Count how long each of several popped jobs waited, and how long completed ones ran; the durations are text, those of
-- runs with their minute behind them (stats.behind).
function stats.waited_all(now, queue, durations)
  local day = now - now % DAY_MS
  local key = keys.pending('wait', day, queue)
  queues.know_pending(queue, 'wait', day, key, append_all('wait', day, queue, key, durations))
end

function stats.ran_all(now, queue, durations)
  local day = now - now % DAY_MS
  local key = keys.pending('run', day, queue)
  queues.know_pending(queue, 'run', day, key, append_all('run', day, queue, key, durations))
end

-- ---- counts

-- The counts of a step are added up, and written at its end.
local function add_to(key, field, by)
  local counts = store.counts or {}
  store.counts = counts
  local fields = counts[key] or {}
  counts[key] = fields
  fields[field] = (fields[field] or 0) + by
end

local function count(at, queue, field, by)
  add_to(keys.stats('stats', stats.day_of(at), queue), field, by)
end

local function count_minute(now, queue, field)
  add_to(keys.stats('minutes', stats.day_of(now), queue), minute_of(now) .. field, 1)
end

-- Count a retry.
function stats.retried(now, queue)
  enter(stats.day_of(now), queue)
  count(now, queue, 'retries', 1)
  count_minute(now, queue, 'r')
end

-- Count a failure.
function stats.failed(now, queue)
  enter(stats.day_of(now), queue)
  count(now, queue, 'failures', 1)
  count(now, queue, 'failed', 1)
  count_minute(now, queue, 'f')
end

-- Count a failed job as no longer failed, on the day of its failure.
function stats.recovered(failed_at, queue)
  local day = stats.day_of(failed_at)
  if is_entered(day, queue) then
    count(failed_at, queue, 'failed', -1)
  end
end

-- ---- looking

local function shown(text, durations, with_bins)
  local sample = fold(decode(text), durations)
  local bins = {}
  if with_bins then
    for i = 0, BINS - 1 do
      bins[i + 1] = sample.bins[i] or 0
    end
  end
  return {sample.count, string.format('%.17g', sample.mean), string.format('%.17g', sample.squares), bins}
end

local function kept(kind, day, queue, with_bins)
  local text = writes.fetch('GET', keys.stats(kind, day, queue)) or EMPTY
  local durations = taken_apart(kind, writes.fetch('LRANGE', keys.pending(kind, day, queue), 0, -1))
  return shown(text, durations, with_bins)
end

-- The pending durations of a tag.
local function pending_of(key, day, queue, tag)
  local _, _, durations = by_tag(key, writes.fetch('LRANGE', keys.stats('tags-new', day, queue), 0, -1))
  return durations[tag] or {wait = {}, run = {}}
end

-- The statistics of the day that contains `at`, as kept at `now`; by a tag or a worker, if one is given.
function stats.view(now, queue, at, tag, worker)
  local day = stats.day_of(at)
  local age = (stats.day_of(now) - day) / DAY_MS
  local with_bins = age <= config.value('histogram-history')
  if age > config.value('stats-history') then
    return {queue, day, shown(EMPTY, {}, with_bins), shown(EMPTY, {}, with_bins), 0, 0, 0}
  end
  if tag or worker then
    local key = keys.stats(tag and 'tags' or 'workers', day, queue)
    local wait, run = string.match(writes.fetch('HGET', key, tag or worker) or EMPTY .. '\n' .. EMPTY, '^(.*)\n(.*)$')
    local more = tag and pending_of(key, day, queue, tag) or {wait = {}, run = {}}
    return {queue, day, shown(wait, more.wait, with_bins), shown(run, more.run, with_bins), 0, 0, 0}
  end
  local counts = writes.fetch('HMGET', keys.stats('stats', day, queue), 'failures', 'failed', 'retries')
  return {
    queue, day, kept('wait', day, queue, with_bins), kept('run', day, queue, with_bins),
    tonumber(counts[1] or 0), math.max(tonumber(counts[2] or 0), 0), tonumber(counts[3] or 0),
  }
end

-- Add the counts of some minutes of a day to a list.
local function show_minutes(found, day, queue, first, last)
  local fields = {}
  for minute = first, last do
    for _, kind in ipairs({'c', 'f', 'r', 'm'}) do
      fields[#fields + 1] = minute .. kind
    end
  end
  local counts = writes.fetch('HMGET', keys.stats('minutes', day, queue), unpack(fields))
  local pending = writes.fetch('LRANGE', keys.pending('run', day, queue), 0, -1)
  local completed, run_ms = by_minute(taken_apart('run', pending))
  for minute = first, last do
    local i, said_as = 4 * (minute - first), store.text(minute)
    found[#found + 1] = {
      day + minute * MINUTE_MS, tonumber(counts[i + 1] or 0) + (completed[said_as] or 0), tonumber(counts[i + 2] or 0),
      tonumber(counts[i + 3] or 0), tonumber(counts[i + 4] or 0) + (run_ms[said_as] or 0),
    }
  end
end

-- The last `count` minutes up to that of `at`, without those that are no longer kept at `now`.
function stats.metrics(now, queue, at, count_)
  local kept_from = now - now % MINUTE_MS - config.value('metrics-history') * MINUTE_MS
  kept_from = math.max(kept_from, stats.day_of(now) - config.value('stats-history') * DAY_MS, 0)
  local last = at - at % MINUTE_MS
  local first = math.max(last - (count_ - 1) * MINUTE_MS, kept_from)
  local found = {}
  while first <= last do
    local day = stats.day_of(first)
    local to = math.min(last, day + DAY_MS - MINUTE_MS)
    show_minutes(found, day, queue, minute_of(first), minute_of(to))
    first = to + MINUTE_MS
  end
  return found
end

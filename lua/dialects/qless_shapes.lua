-- The form of jobs, queues, workers and statistics in qless's replies, twin of qmodel/dialects/qless/shapes.py.
--
-- A job is shown from the record that the operation has read: so before the next operation runs.

local qless_shapes = {}

local WHAT = {
  put = 'put', popped = 'popped', completed = 'done', failed = 'failed', lapsed = 'timed-out', timed_out = 'timed-out',
  told = 'timed-out', log = 'log',
}

local function flag(value)
  return value and 'true' or 'false'
end

local EXHAUSTED = 'Job exhausted retries in queue '
local OF_ENGINE = {
  ['Its lease ran out, and no retries remained.'] = true,
  ['It ran for longer than its timeout, and no retries remained.'] = true,
}

-- The message of a job that failed without remaining retries.
function qless_shapes.exhausted(queue)
  return EXHAUSTED .. '"' .. queue .. '"'
end

-- The message of a job that failed in a queue, which may be deleted since.
function qless_shapes.message(job, queue)
  return job and not OF_ENGINE[job.message] and job.message or qless_shapes.exhausted(queue)
end

-- The last failure of a job. For a job without retries left, the time is exact, and no worker is named.
local function failure(job)
  if job.group == '' then
    return '{}'
  end
  local message, worker = qless_shapes.message(job, string.gsub(job.group, '^failed%-retries%-', '')), job.failed_worker
  local when = qless_texts.digits(math.floor(tonumber(job.failed_at) / 1000))
  if string.sub(message, 1, #EXHAUSTED) == EXHAUSTED then
    when, worker = qless_texts.seconds(job.failed_at), ''
  end
  return qless_texts.record({
    'group', qless_texts.quote(job.group), 'message', qless_texts.quote(message), 'when', when,
    'worker', qless_texts.quote(worker),
  })
end

-- Whether a job failed because it had no retries left: then no call of its holder ended the lease.
local function is_exhausted(job)
  local token
  for found in string.gmatch('\n' .. job.history .. job.added, '\nfailed\t%d+\t(%d+)') do
    token = found
  end
  return token == '0'
end

-- A log entry: its text, and the names and values of the JSON object that begins on a line behind it, if there is one.
local function line(when, text)
  local at = string.find(text, '\n{', 1, true)
  while at and not qless_texts.is_json(string.sub(text, at + 1)) do
    at = string.find(text, '\n{', at + 1, true)
  end
  if not at then
    return qless_texts.record({'when', when, 'what', qless_texts.quote(text)})
  end
  local what, more = string.sub(text, 1, at - 1), string.sub(text, at + 1)
  local inner = string.match(more, '^[ \t\r\n]*{[ \t\r\n]*(.-)[ \t\r\n]*}[ \t\r\n]*$')
  local head = qless_texts.record({'when', when, 'what', qless_texts.quote(what)})
  return '{' .. inner .. (inner ~= '' and ',' or '') .. string.sub(head, 2)
end

local function unquoted(text)
  return (string.gsub(text, '\\(.)', {n = '\n', ['\\'] = '\\'}))
end

local function stage(text, owners, before)
  local what, at, rest = string.match(text, '^([^\t]*)\t(%d+)\t(.*)$')
  local when = qless_texts.digits(math.floor(tonumber(at) / 1000))
  if what == 'log' then
    return line(when, unquoted(rest))
  end
  local one, two = string.match(rest, '^([^\t]*)\t?([^\t]*)$')
  local is_reqless = qless_session.reqless and not qless_session.early
  local retried = is_reqless and before == 'retried' and what == 'failed'
  local said = {'when', when, 'what', qless_texts.quote(retried and 'failed-retries' or WHAT[what] or what)}
  local function say(name, value)
    said[#said + 1] = name
    said[#said + 1] = qless_texts.quote(value)
  end
  if what == 'put' or what == 'throttled' then
    say((is_reqless or what == 'throttled') and 'queue' or 'q', one)
  elseif what == 'popped' then
    owners[two] = one
    say('worker', one)
  elseif what == 'failed' then
    if owners[one] then
      say('worker', owners[one])
    end
    say('group', two)
  end
  return qless_texts.record(said)
end

-- The first entry of a history that is left after its first one. Each entry has cut those before it, as far as
-- `max-job-history` said at its moment: to that number of entries, but 1 cuts one, and 2 none.
local function begin_of(moments)
  local limits, begin = qless_settings.entries_most(), 2
  for place, at in ipairs(moments) do
    local most = qless_settings.ENTRIES
    for _, limit in ipairs(limits) do
      if limit[1] <= at then
        most = limit[2]
      end
    end
    if most > 2 then
      begin = math.max(begin, place - most + 2)
    elseif most == 1 then
      begin = math.min(begin + 1, math.max(place, 2))
    end
  end
  return begin
end

-- A job's history, without the stages that qless does not know.
local function history_of(job)
  local owners, shown, moments, before = {}, {}, {}, ''
  for text in string.gmatch(job.history .. job.added, '([^\n]*)\n') do
    local what, at = string.match(text, '^([^\t]*)\t(%d*)')
    if WHAT[what] or qless_session.reqless and what == 'throttled' then
      shown[#shown + 1] = stage(text, owners, before)
      moments[#moments + 1] = tonumber(at)
    end
    before = what
  end
  if #shown > 2 then
    shown = {shown[1], unpack(shown, begin_of(moments))}
  end
  return qless_texts.listed(shown)
end

-- A job's history in the documents' form: an object for each queue that it was in.
function qless_shapes.stages(text)
  local found = {}
  for line_ in string.gmatch(text, '([^\n]*)\n') do
    local what, at, one = string.match(line_, '^([^\t]*)\t(%d+)\t([^\t]*)')
    local when, last = qless_texts.digits(math.floor(tonumber(at) / 1000)), found[#found]
    if what == 'put' or not last then
      found[#found + 1] = {'q', qless_texts.quote(what == 'put' and one or ''), 'put', when}
    elseif what == 'popped' then
      qless_shapes.set(last, 'popped', when)
      qless_shapes.set(last, 'worker', qless_texts.quote(one))
    elseif what == 'completed' or what == 'failed' then
      qless_shapes.set(last, WHAT[what], when)
    end
  end
  for i, stage_ in ipairs(found) do
    found[i] = qless_texts.record(stage_)
  end
  return qless_texts.listed(found)
end

-- Set a name in a list of names and values.
function qless_shapes.set(pairs_, name, value)
  for i = 1, #pairs_, 2 do
    if pairs_[i] == name then
      pairs_[i + 1] = value
      return
    end
  end
  pairs_[#pairs_ + 1] = name
  pairs_[#pairs_ + 1] = value
end

local function data_of(job, view)
  local data = job.apart == '1' and view[4] or job.data
  return qless_session.document and qless_texts.is_json(data) and data or qless_texts.quote(data)
end

-- The recurring job of a run.
local function spawned_from(job)
  local schedule_jid = string.match(job.history .. job.added, '^spawned\t%d+\t([^\t\n]*)')
  return schedule_jid and qless_texts.quote(schedule_jid) or 'false'
end

-- The names of throttles, as reqless has them.
local function names_of(names)
  local shown = {}
  for i, name in ipairs(names) do
    shown[i] = qless_throttles.theirs(name)
  end
  return qless_texts.quoted(shown)
end

-- A job.
function qless_shapes.job(view)
  local job, now = records.get(view[1]), qless_session.state(view)
  local exhausted = now == 'failed' and tonumber(job.remaining) == 0 and is_exhausted(job)
  local fields = {
    'jid', qless_texts.quote(view[1]),
    'klass', qless_texts.quote(qless_texts.shown_klass(job.klass)),
    'state', qless_texts.quote(now),
    'queue', qless_texts.quote(now == 'complete' and '' or job.queue),
    'worker', qless_texts.quote(job.worker),
    'tracked', flag(view[5] == 1),
    'priority', qless_texts.digits(qless_session.sign * job.priority),
    'expires', qless_texts.seconds(options.get(job, 'told') or job.expires_at),
    'retries', job.retries .. '',
    'remaining', exhausted and '-1' or job.remaining .. '',
    'data', data_of(job, view),
    'tags', qless_texts.quoted(tags.of(job)),
    'history', qless_session.document and qless_shapes.stages(job.history .. job.added) or history_of(job),
    'failure', failure(job),
    'spawned_from_jid', spawned_from(job),
    'dependents', qless_texts.quoted(view[7] or {}),
    'dependencies', qless_texts.quoted(view[6] or {}),
  }
  if qless_session.reqless then
    qless_shapes.set(fields, 'throttles', names_of(throttles.named(job)))
  end
  local text = qless_texts.record(fields)
  if qless_session.document then
    local head = qless_texts.facts({'id', view[1], 'type', qless_texts.shown_klass(job.klass)})
    return string.sub(head, 1, -2) .. ',' .. string.sub(text, 2)
  end
  return text
end

local function each(views)
  local shown = {}
  for i, view in ipairs(views) do
    shown[i] = qless_shapes.job(view)
  end
  return shown
end

-- Several jobs.
function qless_shapes.jobs(views)
  return qless_texts.listed(each(views))
end

-- The jobs that a pop or a peek gives; in the documents a list of texts.
function qless_shapes.granted(views)
  return qless_session.document and each(views) or qless_shapes.jobs(views)
end

-- A queue's counts. A job whose lease was ended is waiting; those that wait for a throttle have a number of their own in
-- reqless.
function qless_shapes.queue(of)
  local ended = qless_session.ended(of[1])
  local counts = {
    'name', qless_texts.quote(of[1]), 'waiting', of[2] + ended + (qless_session.reqless and 0 or of[11]),
  }
  if qless_session.reqless then
    qless_shapes.set(counts, 'throttled', of[11])
  end
  local others = {
    'stalled', of[6] - ended, 'running', of[5], 'scheduled', of[3], 'depends', of[4], 'recurring', of[9],
    'paused', flag(of[7] == 1),
  }
  for i = 1, #others, 2 do
    qless_shapes.set(counts, others[i], others[i + 1])
  end
  return qless_texts.record(counts)
end

-- A recurring job.
function qless_shapes.schedule(of)
  local fields = {
    'jid', qless_texts.quote(of[1]), 'klass', qless_texts.quote(qless_texts.shown_klass(of[3])), 'state', '"recur"',
    'queue', qless_texts.quote(of[2]), 'priority', qless_texts.digits(qless_session.sign * of[5]),
    'interval', qless_texts.seconds(of[8]), 'retries', of[6], 'count', of[10], 'data', qless_texts.quote(of[4]),
    'tags', qless_texts.quoted(of[7]), 'backlog', of[9],
  }
  if qless_session.reqless then
    qless_shapes.set(fields, 'throttles', names_of(of[26]))
  end
  return qless_texts.record(fields)
end

-- A worker's counts.
function qless_shapes.worker(name, count, stalled)
  return qless_texts.record({'name', qless_texts.quote(name), 'jobs', count, 'stalled', stalled})
end

-- The bins of the documents, which are the engine's, as texts; zeros if none are kept.
function qless_shapes.documented(bins)
  local found = {}
  for i = 1, 287 do
    found[i] = qless_texts.digits(bins[i] or 0)
  end
  return found
end

-- The 148 bins of qless, from ours; zeros if none are kept.
function qless_shapes.histogram(bins)
  local found = {}
  if #bins == 0 then
    for i = 1, 148 do
      found[i] = '0'
    end
    return found
  end
  local function add(first, last)
    local sum = 0
    for i = first, last do
      sum = sum + bins[i]
    end
    found[#found + 1] = qless_texts.digits(sum)
  end
  for i = 1, 119 do
    add(i, i)
  end
  for i = 120, 211, 4 do
    add(i, i + 3)
  end
  add(212, 235)
  add(236, 259)
  for i = 260, 263 do
    add(i, i)
  end
  return found
end

local function sample(of)
  local count, squares = of[1], tonumber(of[3])
  local variance = count > 1 and squares / (count - 1) or 0
  local said = {
    'count', qless_texts.digits(count),
    'mean', qless_texts.rounded(tonumber(of[2]) / 1000),
    'std', qless_texts.rounded(math.sqrt(variance) / 1000),
  }
  if qless_session.document then
    qless_shapes.set(said, 'total', qless_texts.digits(count))
    qless_shapes.set(said, 'variance', qless_texts.rounded(variance / 1e6))
  end
  qless_shapes.set(said, 'histogram', qless_texts.listed((qless_session.document and qless_shapes.documented or qless_shapes.histogram)(of[4])))
  return qless_texts.record(said)
end

-- The statistics of a day; of a part of it, only waits and runs.
function qless_shapes.stats(of, is_part)
  if is_part then
    return qless_texts.record({'wait', sample(of[3]), 'run', sample(of[4])})
  end
  return qless_texts.record({
    'retries', of[7], 'failed', of[6], 'failures', of[5], 'wait', sample(of[3]), 'run', sample(of[4]),
  })
end

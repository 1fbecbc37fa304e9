-- A job's record: one text, read once and written once by an operation, and replied as it is when a job is shown. The
-- model's jobs are objects instead (qmodel/model/state/records.py).
--
--   19 fields separated by tabs, a line end, then the data and the history. If the job has any rare property, there
--   follow 11 more fields, a line end, then the result, the progress and the message of the last failure.
--
-- The field `more` is the length of that last part. Data longer than INLINE have a key of their own, so that a step of
-- a big job does not rewrite them. A history is a line for each stage: kind, time and facts, separated by tabs. Only
-- the message of a log stage may be any text; a line end in it is written `\n`, and a backslash `\\`.
--
-- NUMBERS ARE TEXT in a decoded record until something computes with them: that saves two conversions for every field
-- of every job. So compare them with tonumber().
--
-- The fields that few steps need (klass to history) are not decoded, but kept as one text, `rest`, and written back
-- unchanged, with new stages appended. Reading one of these fields decodes them all.
--
-- A VARIABLE THAT HOLDS A RECORD IS CALLED `job`, or ends in `_job`: the bundle turns `job.state` into job[7], by the
-- position of `state` in the list below. Making a list costs a tenth of making a table with as many names.

local records = {}

local INLINE = 1024
local PART = 100 -- records are read with one command, where only their heads are wanted

records.fields = {
  'jid', 'key', 'text', 'shown', 'rest', 'added',
  'state', 'seq', 'stages', 'queue', 'ready_at', 'retries', 'remaining', 'worker', 'token', 'grant', 'popped_at',
  'expires_at', 'ended_at',
  'waits', 'waited_for', 'tags', 'group', 'failed_at', 'failed_worker', 'apart', 'result', 'progress', 'message',
  'options', 'klass', 'priority', 'put_at', 'put_request', 'data', 'history',
}

-- The fields of the text in their order, and those of its rare part.
records.text_fields = {
  'state', 'seq', 'stages', 'more', 'queue', 'ready_at', 'retries', 'remaining', 'worker', 'token', 'grant', 'popped_at',
  'expires_at', 'ended_at', 'klass', 'priority', 'put_at', 'put_request', 'data_size',
}
records.more = {
  'waits', 'waited_for', 'tags', 'group', 'failed_at', 'failed_worker', 'apart', 'result_size', 'progress_size',
  'message_size', 'options',
}

-- Written out, because the string library does not exist yet when Redis loads a library. %C, any character but a
-- control character, is matched several times faster than a set; so the separator between the tags of a job is not a
-- control character. A waiting job and a running one have constant fields that need not be matched.
local WAITING = '^waiting\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t\t(%C*)\t\t(%C*)\t0\t0\t()'
local RUNNING = '^running\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t0\t()'
local FIELDS = '^(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t()'
local EXPIRY = '^%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t%C*\t(%C*)\t'
local REST = '^(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\n()'
local MORE = '^(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\n()'

-- A part of a text of the given size, and the position after it.
local function slice(text, at, size)
  local next_at = at + tonumber(size)
  return string.sub(text, at, next_at - 1), next_at
end

-- ---- what is taken apart when it is asked for

local untouched = {} -- the metatable of a record while its rest is one text

local function take_apart(job)
  setmetatable(job, nil)
  local klass, priority, put_at, put_request, data_size, at = string.match(job.rest, REST)
  local data
  data, at = slice(job.rest, at, data_size)
  job.klass, job.priority, job.put_at, job.put_request, job.data = klass, priority, put_at, put_request, data
  job.history = string.sub(job.rest, at) .. job.added
  job.rest, job.added = false, ''
end

function untouched.__index(job, place)
  take_apart(job)
  return job[place]
end

function untouched.__newindex(job, place, value)
  take_apart(job)
  job[place] = value
end

-- Each text that is made of a part of the record costs Redis as much for each byte as reading it, so none is made twice.
local function decode_more(job, text, from)
  local waits, waited_for, tags_, group, failed_at, failed_worker, apart, result_size, progress_size, message_size, options_,
    at = string.match(text, MORE, from)
  job.waits, job.waited_for, job.tags, job.group, job.failed_at, job.failed_worker, job.apart =
    waits, waited_for, tags_, group, failed_at, failed_worker, apart
  job.result, at = slice(text, at, result_size)
  job.progress, at = slice(text, at, progress_size)
  job.message = slice(text, at, message_size)
  job.options = options_
end

-- Take a text apart.
function records.decode(jid, key, text)
  local state, worker, grant, expires_at, ended_at = 'waiting', '', '', '0', '0'
  local seq, stages, more, queue, ready_at, retries, remaining, token, popped_at, at = string.match(text, WAITING)
  if not seq then
    state = 'running'
    seq, stages, more, queue, ready_at, retries, remaining, worker, token, grant, popped_at, expires_at, at =
      string.match(text, RUNNING)
  end
  if not seq then
    state, seq, stages, more, queue, ready_at, retries, remaining, worker, token, grant, popped_at, expires_at, ended_at,
      at = string.match(text, FIELDS)
    if not seq then
      writes.fail(key, 'its text is not that of a job')
    end
  end
  local rest = more == '0' and string.sub(text, at) or string.sub(text, at, -1 - more)
  local job = {
    jid, key, text, false, rest, '', state, seq, stages, queue, ready_at, retries, remaining, worker, token, grant, popped_at,
    expires_at, ended_at, '0', '0', '', '', '0', '', '0', '', '', '', '',
  }
  if more ~= '0' then
    decode_more(job, text, -more)
  end
  return setmetatable(job, untouched)
end

-- ---- the records of an operation

local known -- jid -> record, or false

-- Forget the records of the previous operation; know one, if its text was read already.
function records.begin(jid, key, text)
  if jid then
    known = {[jid] = text and records.decode(jid, key, text)}
  else
    known = {}
  end
end

-- The record of a job, or false; the same table each time within an operation.
function records.get(jid)
  local job = known[jid]
  if job == nil then
    local key = keys.job(jid)
    local text = writes.fetch('GET', key)
    job = text and records.decode(jid, key, text)
    known[jid] = job
  end
  return job
end

-- End the call with an error: a list has the id of a job whose record is missing.
function records.missing(jid)
  writes.fail(keys.job(jid), 'is missing, but its id is in a list')
end

-- Read many records with one command.
function records.prefetch(jids)
  local wanted, of = {}, {}
  for i = 1, #jids do
    local jid = jids[i]
    if known[jid] == nil then
      local size = #wanted + 1
      wanted[size], of[size] = keys.job(jid), jid
    end
  end
  if #wanted > 0 then
    local found = store.read_all(wanted)
    for i = 1, #of do
      local text = found[i]
      known[of[i]] = text and records.decode(of[i], wanted[i], text)
    end
  end
end

-- When the leases of some jobs end: no more of their records is taken apart.
function records.expiries(jids)
  local found = {}
  for first = 1, #jids, PART do
    local wanted = {}
    for i = first, math.min(first + PART - 1, #jids) do
      wanted[#wanted + 1] = keys.job(jids[i])
    end
    for i, text in ipairs(store.read_all(wanted)) do
      found[#found + 1] = text and tonumber(string.match(text, EXPIRY)) or records.missing(jids[first + i - 1])
    end
  end
  return found
end

function records.new(jid)
  local job = {
    jid, keys.job(jid), false, false, false, '', '', '0', '0', '', '0', '5', '5', '', '0', '', '0', '0', '0',
    '0', '0', '', '', '0', '', '0', '', '', '', '', '', '0', '0', '', '', '',
  }
  known[jid] = job
  if store.gone then
    store.texts[job.key] = nil -- this operation may have deleted a job with that id
  end
  return job
end

-- Read data that have a key of their own.
function records.data(job)
  return store.read(job.key .. '-data')
end

-- How many bytes such data have.
function records.data_size(job)
  local key = job.key .. '-data'
  local text = store.texts and store.texts[key]
  return text and #text or writes.fetch('STRLEN', key)
end

function records.set_data(job, data)
  local was_apart = job.apart == '1'
  if #data > INLINE then
    job.data, job.apart = '', '1'
    store.write(job.key .. '-data', data)
    return
  end
  job.data, job.apart = data, '0'
  if was_apart then
    store.write(job.key .. '-data', false)
  end
end

function records.set_failure(job, group, message, at, worker)
  job.group, job.message, job.failed_at, job.failed_worker = group, message, store.text(at), worker
end

function records.clear_failure(job)
  if job.group ~= '' then
    records.set_failure(job, '', '', 0, '')
  end
end

-- ---- writing

-- The rare part without its texts.
local function head_of_more(job)
  return job.waits .. '\t' .. job.waited_for .. '\t' .. job.tags .. '\t' .. job.group .. '\t' .. job.failed_at .. '\t'
    .. job.failed_worker .. '\t' .. job.apart .. '\t' .. store.text(#job.result) .. '\t'
    .. store.text(#job.progress) .. '\t' .. store.text(#job.message) .. '\t' .. job.options .. '\n'
end

-- The rare part of a record without its texts; empty for most jobs. Only a job with a failure group has failed.
local function more_of(job)
  if job.waited_for == '0' and job.tags == '' and job.result == '' and job.group == '' and job.waits == '0'
    and job.apart == '0' and job.progress == '' and job.options == '' then
    return ''
  end
  return head_of_more(job)
end

local function rest_of(job)
  return job.klass .. '\t' .. job.priority .. '\t' .. (store.numbers[job.put_at] or job.put_at) .. '\t' .. job.put_request
    .. '\t' .. store.text(#job.data) .. '\n' .. job.data .. job.history
end

-- Write the record as text. Numbers computed in this operation have been turned into text once, in store.numbers.
function records.encode(job)
  local numbers = store.numbers
  local more, result, progress, message = more_of(job), '', '', ''
  local size = '0'
  if more ~= '' then
    result, progress, message = job.result, job.progress, job.message
    size = store.text(#more + #result + #progress + #message)
  end
  return job.state .. '\t' .. (numbers[job.seq] or job.seq) .. '\t' .. job.stages .. '\t'
    .. size .. '\t' .. job.queue .. '\t'
    .. (numbers[job.ready_at] or job.ready_at) .. '\t' .. job.retries .. '\t' .. job.remaining .. '\t' .. job.worker
    .. '\t' .. (numbers[job.token] or job.token) .. '\t' .. job.grant .. '\t'
    .. (numbers[job.popped_at] or job.popped_at) .. '\t' .. (numbers[job.expires_at] or job.expires_at) .. '\t'
    .. (numbers[job.ended_at] or job.ended_at) .. '\t' .. (job.rest or rest_of(job)) .. job.added .. more
    .. result .. progress .. message
end

function records.remove(job)
  known[job.jid] = false
  store.write(job.key, false)
  if job.apart == '1' then
    store.write(job.key .. '-data', false)
  end
end

-- Write every record that has changed. A record that was shown is encoded already.
function records.flush()
  for _, job in pairs(known) do
    if job then
      local text = job.shown or records.encode(job)
      if text ~= job.text then
        store.save(job.key, text)
      end
    end
  end
end

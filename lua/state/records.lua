-- A job's record: one text, read once and written once by an operation, and given as it is to whoever asks for the job.
-- It has no mirror in the model, whose jobs are objects.
--
--   27 fields with a tab between, a line end, then data, result, progress, failure message and history, one after the
--   other; the last four fields but one are the lengths of the first four of them.
--
-- Data longer than INLINE stand in a key of their own, so that a step of a big job does not rewrite them; their length
-- field is then `@`. A history is a line for each stage: what, when and its facts with tabs between. Only a log's message
-- may be any text; a line end in it is written `\n`, and a backslash `\\`.
--
-- NUMBERS ARE TEXT in a decoded record until something computes with them: that saves a conversion each way for every
-- field of every job (a third of the whole cost of a step). So compare them through tonumber().

local records = {}

local INLINE = 1024

records.fields = {
  'state', 'queue', 'klass', 'priority', 'retries', 'remaining', 'seq', 'put_at', 'ready_at', 'popped_at',
  'expires_at', 'ended_at', 'worker', 'token', 'put_request', 'grant', 'tags', 'waits', 'waited_for', 'group',
  'failed_at', 'failed_worker', 'stages', 'data_size', 'result_size', 'progress_size', 'message_size',
}

-- Written out, for the string library is not there when Redis loads a library. %C, any but a control character, is
-- matched several times faster than a set; so what separates the tags of a job is no control character.
local PATTERN = '^(%C*)' ..
  '\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)' ..
  '\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)\t(%C*)' ..
  '\t(%C*)\t(%C*)\n()'

-- So many bytes of a text, and where the next begin.
local function slice(text, at, size)
  local next_at = at + tonumber(size)
  return string.sub(text, at, next_at - 1), next_at
end

-- (A table of 32 fields is the largest that fits in 32 places; one more would double it.)
local function decode(jid, text)
  local state, queue, klass, priority, retries, remaining, seq, put_at, ready_at, popped_at, expires_at, ended_at,
    worker, token, put_request, grant, tags_, waits, waited_for, group, failed_at, failed_worker, stages, data_size,
    result_size, progress_size, message_size, at = string.match(text, PATTERN)
  local data, result, progress, message = nil, '', '', ''
  if data_size ~= '@' then
    data, at = slice(text, at, data_size)
  end
  if result_size ~= '0' then
    result, at = slice(text, at, result_size)
  end
  if progress_size ~= '0' then
    progress, at = slice(text, at, progress_size)
  end
  if message_size ~= '0' then
    message, at = slice(text, at, message_size)
  end
  return {
    jid = jid, text = text, shown = nil, state = state, queue = queue, klass = klass, priority = priority,
    retries = retries, remaining = remaining, seq = seq, put_at = put_at, ready_at = ready_at, popped_at = popped_at,
    expires_at = expires_at, ended_at = ended_at, worker = worker, token = token, put_request = put_request,
    grant = grant, tags = tags_, waits = waits, waited_for = waited_for, group = group, failed_at = failed_at,
    failed_worker = failed_worker, stages = stages, data_size = data_size, data = data, result = result,
    progress = progress, message = message, history = string.sub(text, at),
  }
end

function records.new(jid)
  local job = {
    jid = jid, text = nil, shown = nil, state = '', queue = '', klass = '', priority = '0', retries = '5',
    remaining = '5', seq = '0', put_at = '0', ready_at = '0', popped_at = '0', expires_at = '0', ended_at = '0',
    worker = '', token = '0', put_request = '', grant = '', tags = '', waits = '0', waited_for = '0', group = '',
    failed_at = '0', failed_worker = '', stages = '0', data_size = '0', data = '', result = '', progress = '',
    message = '', history = '',
  }
  store.jobs[jid] = job
  return job
end

-- The record of a job, or false; the same table each time within an operation.
function records.get(jid)
  local job = store.jobs[jid]
  if job == nil then
    local text = store.read(keys.job(jid))
    job = text and decode(jid, text)
    store.jobs[jid] = job
  end
  return job
end

-- Read many records with one command.
function records.prefetch(jids)
  local wanted = {}
  for _, jid in ipairs(jids) do
    if store.jobs[jid] == nil and store.texts[keys.job(jid)] == nil then
      wanted[#wanted + 1] = keys.job(jid)
    end
  end
  if #wanted > 0 then
    store.prefetch(wanted)
  end
end

function records.data(job)
  if not job.data then
    job.data = store.read(keys.job(job.jid) .. '-data')
  end
  return job.data
end

function records.set_data(job, data)
  local was_apart = job.data_size == '@'
  job.data = data
  job.data_size = #data > INLINE and '@' or store.text(#data)
  if job.data_size == '@' then
    store.write(keys.job(job.jid) .. '-data', data)
  elseif was_apart then
    store.write(keys.job(job.jid) .. '-data', false)
  end
end

-- The record as text. Numbers that were computed in this operation have been made text once, in store.numbers.
function records.encode(job)
  local numbers = store.numbers
  return job.state .. '\t' .. job.queue .. '\t' .. job.klass .. '\t' .. job.priority .. '\t' .. job.retries .. '\t'
    .. job.remaining .. '\t' .. (numbers[job.seq] or job.seq) .. '\t' .. (numbers[job.put_at] or job.put_at) .. '\t'
    .. (numbers[job.ready_at] or job.ready_at) .. '\t' .. (numbers[job.popped_at] or job.popped_at) .. '\t'
    .. (numbers[job.expires_at] or job.expires_at) .. '\t' .. (numbers[job.ended_at] or job.ended_at) .. '\t'
    .. job.worker .. '\t' .. (numbers[job.token] or job.token) .. '\t' .. job.put_request .. '\t' .. job.grant
    .. '\t' .. job.tags .. '\t' .. job.waits .. '\t' .. job.waited_for .. '\t' .. job.group .. '\t'
    .. job.failed_at .. '\t' .. job.failed_worker .. '\t' .. job.stages .. '\t' .. job.data_size .. '\t'
    .. (job.result == '' and '0' or #job.result) .. '\t' .. (job.progress == '' and '0' or #job.progress) .. '\t'
    .. (job.message == '' and '0' or #job.message) .. '\n' .. (job.data_size == '@' and '' or job.data) .. job.result
    .. job.progress .. job.message .. job.history
end

function records.remove(job)
  store.jobs[job.jid] = false
  store.write(keys.job(job.jid), false)
  if job.data_size == '@' then
    store.write(keys.job(job.jid) .. '-data', false)
  end
end

-- Write every record that has changed. One that was shown has been encoded already.
function records.flush()
  for jid, job in pairs(store.jobs) do
    if job then
      local text = job.shown or records.encode(job)
      if text ~= job.text then
        store.write(keys.job(jid), text)
      end
    end
  end
end

-- A job's record: one text, read once and written once by an operation, and given as it is to whoever asks for the job.
-- It has no mirror in the model, whose jobs are objects.
--
--   27 fields with a tab between, a line end, then data, result, progress, failure message and history, one after the
--   other; the last four fields but one are the lengths of the first four of them.
--
-- Data longer than INLINE stand in a key of their own, so that a step of a big job does not rewrite them; their length
-- field is then `@`. A history is `<length>:<stage>` for each stage, a stage is what, when and its facts with tabs
-- between; only the last fact may hold any text.
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

-- Written out, for the string library is not there when Redis loads a library.
local PATTERN = '^([^\t]*)' ..
  '\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)' ..
  '\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)' ..
  '\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)' ..
  '\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)' ..
  '\t([^\t\n]*)\n()'

local function decode(jid, text)
  local job = {jid = jid, text = text}
  local at
  job.state, job.queue, job.klass, job.priority, job.retries, job.remaining, job.seq, job.put_at, job.ready_at,
    job.popped_at, job.expires_at, job.ended_at, job.worker, job.token, job.put_request, job.grant, job.tags,
    job.waits, job.waited_for, job.group, job.failed_at, job.failed_worker, job.stages, job.data_size,
    job.result_size, job.progress_size, job.message_size, at = string.match(text, PATTERN)
  if job.data_size ~= '@' then
    job.data = string.sub(text, at, at + job.data_size - 1)
    at = at + job.data_size
  end
  job.result = string.sub(text, at, at + job.result_size - 1)
  at = at + job.result_size
  job.progress = string.sub(text, at, at + job.progress_size - 1)
  at = at + job.progress_size
  job.message = string.sub(text, at, at + job.message_size - 1)
  job.history = string.sub(text, at + job.message_size)
  return job
end

function records.new(jid)
  local job = {
    jid = jid, state = '', queue = '', klass = '', priority = 0, retries = 5, remaining = 5, seq = 0, put_at = 0,
    ready_at = 0, popped_at = 0, expires_at = 0, ended_at = 0, worker = '', token = 0, put_request = '', grant = '',
    tags = '', waits = 0, waited_for = 0, group = '', failed_at = 0, failed_worker = '', stages = 0, data_size = 0,
    data = '', result = '', progress = '', message = '', history = '',
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
  job.data_size = #data > INLINE and '@' or #data
  if job.data_size == '@' then
    store.write(keys.job(job.jid) .. '-data', data)
  elseif was_apart then
    store.write(keys.job(job.jid) .. '-data', false)
  end
end

function records.encode(job)
  local apart = job.data_size == '@'
  return table.concat({
    job.state, job.queue, job.klass, job.priority, job.retries, job.remaining, job.seq, job.put_at, job.ready_at,
    job.popped_at, job.expires_at, job.ended_at, job.worker, job.token, job.put_request, job.grant, job.tags,
    job.waits, job.waited_for, job.group, job.failed_at, job.failed_worker, job.stages, job.data_size,
    #job.result, #job.progress, #job.message,
  }, '\t') .. '\n' .. (apart and '' or job.data) .. job.result .. job.progress .. job.message .. job.history
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

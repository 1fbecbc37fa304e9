-- Dead letters, and trying their jobs again. They are written in burying.lua.

local replaying = {}

-- The put that begins the job anew of which this is a dead letter.
local function again(letter_job, origin)
  return {
    queue = options.get(letter_job, 'origin_queue'),
    jid = origin,
    klass = letter_job.klass,
    data = letter_job.apart == '1' and records.data(letter_job) or letter_job.data,
    priority = letter_job.priority,
    delay_ms = 0,
    retries = letter_job.retries,
    tags = tags.of(letter_job),
    lifo = options.get(letter_job, 'lifo') ~= nil,
    lease_ms = options.get(letter_job, 'lease_ms'),
    timeout_ms = options.get(letter_job, 'timeout_ms'),
    dead_queue = options.get(letter_job, 'origin_dead_queue'),
    request = '',
    named = true,
  }
end

-- Put the job of a dead letter anew, and delete the letter.
function replaying.replay(now, op)
  local letter_job = jobs.find(op.jid)
  local origin = options.get(letter_job, 'origin')
  if not origin then
    refusals.refuse('NOT_A_DEAD_LETTER', op.jid)
  end
  if letter_job.state == 'complete' then
    refusals.refuse('WRONG_STATE', op.jid, letter_job.state)
  end
  local job = jobs.get(origin)
  if job and job.state ~= 'failed' then
    refusals.refuse('WRONG_STATE', origin, job.state)
  end
  for _, dependent in ipairs(dependencies.dependents(letter_job)) do
    refusals.refuse('HAS_DEPENDENTS', op.jid, dependent)
  end
  dependencies.check_bounded(letter_job)

  local anew = again(letter_job, origin)
  removing.cancel(now, {jids = {op.jid}, cascade = false})
  return putting.put(now, anew)
end

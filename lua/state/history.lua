-- A job's history: its stages in order, the first one and the newest, up to max-job-history. It also remembers the
-- outcome of a lease: the stage that ended the lease carries its token, so a repeated call is answered from here.

local history = {}

-- Counts below the least max-job-history, and their successors.
local FEW = {['0'] = '1', ['1'] = '2', ['2'] = '3', ['3'] = '4'}

-- The position at which the n-th stage begins.
local function beginning(text, n)
  local at = 1
  for _ = 2, n do
    at = string.find(text, '\n', at, true) + 1
  end
  return at
end

local function trim(job, most)
  local text, surplus = job.history .. job.added, job.stages - most
  local second = beginning(text, 2)
  local kept = beginning(text, 2 + surplus)
  job.history, job.added = string.sub(text, 1, second - 1) .. string.sub(text, kept), ''
  job.stages = store.text(most)
end

-- Append a stage with one or two facts.
function history.add(now, job, what, one, two)
  local numbers = store.numbers
  if two then
    job.added = job.added .. what .. '\t' .. (numbers[now] or store.text(now)) .. '\t' .. (numbers[one] or one) .. '\t'
      .. (numbers[two] or two) .. '\n'
  else
    job.added = job.added .. what .. '\t' .. (numbers[now] or store.text(now)) .. '\t' .. (numbers[one] or one) .. '\n'
  end
  local few = FEW[job.stages]
  if few then
    job.stages = few
    return
  end
  local stages, most = job.stages + 1, config.value('max-job-history')
  job.stages = store.text(stages)
  if stages > most then
    trim(job, most)
  end
end

local BRIEF = 1024

-- Write any text as a fact on one line.
function history.quote(text)
  return (string.gsub(text, '[\\\n]', {['\\'] = '\\\\', ['\n'] = '\\n'}))
end

-- The part of a message that a stage keeps, as a fact: its end, where a traceback names its error. It begins with a whole
-- character.
function history.brief(message)
  local at = math.max(#message - BRIEF + 1, 1)
  if at > 1 then
    at = string.find(message, '[^\128-\191]', at)
  end
  return history.quote(string.sub(message, at))
end

-- The fact next to the token in the stage that ended this lease by this kind of call, or nil.
function history.outcome(job, token, what)
  local outcome
  for stage, of, fact in string.gmatch(job.history .. job.added, '([^\t\n]*)\t%d+\t([^\t\n]*)\t?([^\n]*)\n') do
    if stage == what and of == token then
      outcome = fact
    end
  end
  return outcome
end

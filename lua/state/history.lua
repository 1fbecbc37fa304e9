-- A job's history: its stages in order, the first and the newest up to max-job-history. It is also where the outcome of
-- a lease is remembered: the stage that ended it carries its token, so a resend of the same call is answered from here.

local history = {}

local LEAST = 4

-- Where the n-th stage begins.
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

-- Append a stage; it has one fact or two.
function history.add(now, job, what, one, two)
  local stage = what .. '\t' .. store.text(now) .. '\t' .. (store.numbers[one] or one)
  if two then
    stage = stage .. '\t' .. (store.numbers[two] or two)
  end
  job.added = job.added .. stage .. '\n'
  local stages = job.stages + 1
  job.stages = store.text(stages)
  if stages > LEAST then
    local most = config.value('max-job-history')
    if stages > most then
      trim(job, most)
    end
  end
end

-- Any text as a fact: on one line.
function history.quote(text)
  return (string.gsub(text, '[\\\n]', {['\\'] = '\\\\', ['\n'] = '\\n'}))
end

-- The fact beside the token in the stage by which this kind of call ended that lease, if it did.
function history.outcome(job, token, what)
  local outcome
  for stage, of, fact in string.gmatch(job.history .. job.added, '([^\t\n]*)\t%d+\t([^\t\n]*)\t?([^\n]*)\n') do
    if stage == what and tonumber(of) == token then
      outcome = fact
    end
  end
  return outcome
end

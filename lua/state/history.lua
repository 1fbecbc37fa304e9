-- A job's history: its stages in order, the first and the newest up to max-job-history. It is also where the outcome of
-- a lease is remembered: the stage that ended it carries its token, so a resend of the same call is answered from here.

local history = {}

local LEAST = 4

-- Where each stage of a history begins and ends, and the text of each.
local function stages(text)
  local found, at = {}, 1
  while at <= #text do
    local _, colon, size = string.find(text, '^(%d+):', at)
    found[#found + 1] = {from = at, text = string.sub(text, colon + 1, colon + size)}
    at = colon + size + 1
  end
  return found
end

local function trim(job, most)
  local surplus = job.stages - most
  local found = stages(job.history)
  job.history = string.sub(job.history, 1, found[2].from - 1) .. string.sub(job.history, found[2 + surplus].from)
  job.stages = most
end

-- Append a stage.
function history.add(now, job, what, ...)
  local stage = table.concat({what, now, ...}, '\t')
  job.history = job.history .. #stage .. ':' .. stage
  job.stages = job.stages + 1
  if job.stages > LEAST then
    local most = config.value('max-job-history')
    if job.stages > most then
      trim(job, most)
    end
  end
end

-- The fact beside the token in the stage by which this kind of call ended that lease, if it did.
function history.outcome(job, token, what)
  local found = stages(job.history)
  for i = #found, 1, -1 do
    local stage, of, outcome = string.match(found[i].text, '^([^\t]*)\t%d+\t([^\t]*)\t?(.*)$')
    if stage == what and tonumber(of) == token then
      return outcome
    end
  end
end

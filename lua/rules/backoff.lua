-- Backoff: how long a job waits before it is tried again. The rules are described in qmodel/model/rules/backoff.py.

local backoff = {}

local MOST_MS = 86400000 -- the longest delay of a job that does not say another one: a day
local DOUBLINGS = 20 -- after so many doublings a delay stays as it is

-- How long the next retry of a job waits at least, in milliseconds.
function backoff.delay(job)
  local first = tonumber(options.get(job, 'retry_delay_ms'))
  if not first then
    return 0
  end
  local before = job.retries - job.remaining + (options.get(job, 'lapses') or 0)
  local most = tonumber(options.get(job, 'retry_delay_max_ms') or math.max(MOST_MS, first))
  return math.min(first * 2 ^ math.min(before, DOUBLINGS), most)
end

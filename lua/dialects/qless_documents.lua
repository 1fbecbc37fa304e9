-- The calls of the two qless documents of 2012, twin of qmodel/dialects/qless/documents.py: a script for each
-- operation, with its own order of arguments.
--
--   FCALL qmodel_v1_qless_document 1 <prefix> <document> <operation> <key> ... <argument> ...
--
-- A number is the index of a given word, `n*` means all words from the n-th on, `=word` the word itself, and `now` the
-- server's time.

local qless_documents = {}

local NO_KLASS = 'job'

local function configure(given)
  return given[2] and {'config.set', 'now', 1, 2} or {'config.unset', 'now', 1}
end

local function tag(given)
  return given[1] == 'get' and {'tag', 'now', '1*'} or {'tag', 3, 1, 2, '4*'}
end

local function track(given)
  return given[1] and {'track', 3, 1, 2} or {'track', 'now'}
end

-- The worker that holds a job, because the earlier document names no worker.
local function holder(jid)
  local view = qless_session.ask('Get', 'get', {jid})
  local job = view and records.get(jid)
  if not job or job.worker == '' then
    qless_session.fail('Job ' .. jid .. ' is not running', true)
  end
  return job, job.apart == '1' and view[4] or job.data
end

-- Add names, each with the index of its value, if that is given.
local function with(said, given, names)
  for _, one in ipairs(names) do
    if given[one[2]] then
      said[#said + 1] = one[1]
      said[#said + 1] = one[2]
    end
  end
  return said
end

local function complete(given)
  local job, data = holder(given[1] or '')
  local said = {'complete', 'now', 1, '=' .. job.worker, '=' .. job.queue, '=' .. (given[2] or data)}
  return with(said, given, {{'=next', 3}, {'=delay', 4}})
end

local function fail(given)
  local job = holder(given[1] or '')
  return {'fail', 4, 1, '=' .. job.worker, 2, 3}
end

local function put(given)
  local said = {'put', 4, '=', 1, 2, '=' .. NO_KLASS, 3, given[7] and 7 or '=0'}
  return with(said, given, {{'=priority', 5}, {'=tags', 6}})
end

-- (Made on demand, because every call runs the whole script.)
local function shared()
  return {
    cancel = {'cancel', 'now', 1}, failed = {'failed', 'now', '1*'}, get = {'get', 'now', 1},
    getconfig = {'config.get', 'now', '1*'}, peek = {'peek', 3, 1, 2}, pop = {'pop', 4, 1, 2, 3}, setconfig = configure,
    stats = {'stats', 'now', 1, 2, '3*'},
  }
end

local function documents()
  return {
    ['000'] = {
      complete = {'complete', 4, 1, 2, 3, 5, '6*'}, depends = {'depends', 'now', 1, '2*'},
      fail = {'fail', 5, 1, 2, 3, 4, '6*'}, heartbeat = {'heartbeat', 3, 1, 2, '4*'}, jobs = {'jobs', 2, 1, '3*'},
      priority = {'priority', 'now', 1, 2}, put = {'put', 5, '=', 1, 2, 3, 4, 6, '7*'}, queues = {'queues', 1, '2*'},
      retry = {'retry', 4, 1, 2, 3, '5*'}, tag = tag, track = track, workers = {'workers', 1, '2*'},
    },
    ['001'] = {complete = complete, fail = fail, heartbeat = {'heartbeat', 'now', 1, 2, '4*'}, put = put},
  }
end

-- What stands at some places, up to the first that is not given.
local function placed(given, places)
  local found = {}
  for i = 3, #places do
    local place = places[i]
    if type(place) == 'number' then
      if given[place] == nil then
        break
      end
      found[#found + 1] = given[place]
    elseif string.sub(place, 1, 1) == '=' then
      found[#found + 1] = string.sub(place, 2)
    else
      for at = tonumber(string.sub(place, 1, -2)), #given do
        found[#found + 1] = given[at]
      end
    end
  end
  return found
end

-- Refuse a call with an argument that nothing understands.
local function refuse_surplus(operation, given, places, ignored)
  local last = ignored
  for i = 2, #places do
    local place = places[i]
    if type(place) == 'number' then
      last = math.max(last, place)
    elseif string.sub(place, -1) == '*' then
      return
    end
  end
  if #given > last then
    local name = string.upper(string.sub(operation, 1, 1)) .. string.sub(operation, 2)
    qless_session.fail(name .. '(): Unexpected argument ' .. given[last + 1])
  end
end

local function execute(translation, given, document, operation)
  qless_session.begin(store.clock(), true)
  local places = type(translation) == 'function' and translation(given) or translation
  -- The option `heartbeat` says when a lease ends, and not the expiration that a pop of the earlier document has.
  refuse_surplus(operation, given, places, document == '001' and operation == 'pop' and 5 or 0)
  if places[2] ~= 'now' then
    qless_session.begin(qless.moment(given[places[2]]), true)
  end
  return qless.execute(places[1], placed(given, places))
end

-- Execute one call in a document's form, keys first; give its reply, or the sentence of its refusal.
function qless_documents.call(prefix, document, operation, given, simulated)
  keys.begin(prefix)
  qless_session.simulated = simulated
  local own = documents()[document]
  local translation = own and (own[operation] or shared()[operation])
  if not translation then
    return nil, 'Unknown command ' .. tostring(operation)
  end
  return qless.guarded(execute, translation, given, document, operation)
end

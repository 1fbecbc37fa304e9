-- The qless dialect: the commands of qless's bindings, twin of qmodel/dialects/qless/commands.py. It makes no
-- decisions: it checks the form of a command, calls the engine, and turns the reply into the form that bindings expect.
--
--   FCALL qmodel_v1_qless 1 <prefix> <command> <now> <argument> ...
--
-- The same files make the script that a binding loads in place of its own qless.lua; it takes no key.

local qless = {}

local COMMANDS = {
  put = qless_jobs.put, requeue = qless_jobs.requeue, heartbeat = qless_jobs.heartbeat, complete = qless_jobs.complete,
  fail = qless_jobs.fail, retry = qless_jobs.retry, timeout = qless_jobs.timeout, cancel = qless_jobs.cancel,
  priority = qless_jobs.priority, depends = qless_jobs.depends, log = qless_jobs.log, tag = qless_jobs.tag,
  track = qless_jobs.track, pop = qless_queues.pop, peek = qless_queues.peek, get = qless_queues.get,
  multiget = qless_queues.multiget, jobs = qless_queues.jobs, failed = qless_queues.failed,
  queues = qless_queues.queues, length = qless_queues.length, stats = qless_queues.stats,
  workers = qless_queues.workers, unfail = qless_queues.unfail, pause = qless_queues.pause,
  unpause = qless_queues.unpause, ['queue.forget'] = qless_queues.forget,
  ['worker.deregister'] = qless_queues.deregister,
  recur = qless_recurring.recur, unrecur = qless_recurring.unrecur, ['recur.get'] = qless_recurring.recur_get,
  ['recur.update'] = qless_recurring.recur_update, ['recur.tag'] = qless_recurring.recur_tag,
  ['recur.untag'] = qless_recurring.recur_untag,
  ['config.get'] = qless_settings.config_get, ['config.set'] = qless_settings.config_set,
  ['config.unset'] = qless_settings.config_unset,
  ['queue.throttle.get'] = qless_throttles.queue_throttle_get, -- from here on, what only reqless has
  ['queue.throttle.set'] = qless_throttles.queue_throttle_set,
  ['queueIdentifierPatterns.getAll'] = qless_throttles.identifiers_get,
  ['queueIdentifierPatterns.setAll'] = qless_throttles.identifiers_set,
  ['queuePriorityPatterns.getAll'] = qless_throttles.priorities_get,
  ['queuePriorityPatterns.setAll'] = qless_throttles.priorities_set,
  ['queues.names'] = qless_queues.names, ['throttle.delete'] = qless_throttles.throttle_delete,
  ['throttle.get'] = qless_throttles.throttle_get, ['throttle.locks'] = qless_throttles.throttle_locks,
  ['throttle.pending'] = qless_throttles.throttle_pending, ['throttle.release'] = qless_throttles.throttle_release, ['throttle.set'] = qless_throttles.throttle_set,
  ['throttle.ttl'] = qless_throttles.throttle_ttl,
}

-- reqless's names: the command, and words to insert before its arguments, or after the first few of them. (Made on
-- demand, because every call runs the whole script.)
local function reqless()
  return {
    ['config.getAll'] = {'config.get'}, ['failureGroups.counts'] = {'failed'},
    ['job.addDependency'] = {'depends', 1, 'on'}, ['job.addTag'] = {'tag', 0, 'add'}, ['job.cancel'] = {'cancel'},
    ['job.complete'] = {'complete'}, ['job.completeAndRequeue'] = {'complete', 4, 'next'}, ['job.fail'] = {'fail'},
    ['job.get'] = {'get'}, ['job.getMulti'] = {'multiget'}, ['job.heartbeat'] = {'heartbeat'}, ['job.log'] = {'log'},
    ['job.removeDependency'] = {'depends', 1, 'off'}, ['job.removeTag'] = {'tag', 0, 'remove'},
    ['job.requeue'] = {'requeue'}, ['job.retry'] = {'retry'}, ['job.setPriority'] = {'priority'},
    ['job.timeout'] = {'timeout'}, ['job.track'] = {'track', 0, 'track'}, ['job.untrack'] = {'track', 0, 'untrack'},
    ['jobs.completed'] = {'jobs', 0, 'complete'}, ['jobs.failedByGroup'] = {'failed'},
    ['jobs.tagged'] = {'tag', 0, 'get'}, ['jobs.tracked'] = {'track'}, ['queue.counts'] = {'queues'},
    ['queue.jobsByState'] = {'jobs'}, ['queue.length'] = {'length'}, ['queue.pause'] = {'pause'},
    ['queue.peek'] = {'peek'}, ['queue.pop'] = {'pop'}, ['queue.put'] = {'put'}, ['queue.stats'] = {'stats'},
    ['queue.unfail'] = {'unfail'}, ['queue.unpause'] = {'unpause'}, ['queues.counts'] = {'queues'},
    ['queue.recurAtInterval'] = {'recur', 4, 'interval'}, ['recurringJob.addTag'] = {'recur.tag'},
    ['recurringJob.cancel'] = {'unrecur'}, ['recurringJob.get'] = {'recur.get'},
    ['recurringJob.removeTag'] = {'recur.untag'}, ['recurringJob.update'] = {'recur.update'},
    ['tags.top'] = {'tag', 0, 'top'}, ['worker.forget'] = {'worker.deregister'},
    ['worker.jobs'] = {'workers'}, ['workers.counts'] = {'workers'},
  }
end

local MOST = 5000 -- the most arguments; Lua unpacks at most 7999

-- The commands with a list as reply in qless, and JSON in reqless.
local JSON_LISTS = {['jobs.completed'] = true, ['queue.jobsByState'] = true}

-- Commands of reqless whose empty list is `[]`; everywhere else it is `{}`.
local LISTS = {
  ['throttle.locks'] = true, ['throttle.pending'] = true, ['queues.names'] = true,
  ['queuePriorityPatterns.getAll'] = true,
  ['job.addTag'] = true, ['job.getMulti'] = true, ['job.removeTag'] = true, ['jobs.completed'] = true,
  ['queue.jobsByState'] = true, ['queue.peek'] = true, ['queue.pop'] = true, ['queues.counts'] = true,
  ['tags.top'] = true, ['workers.counts'] = true,
}

-- Find the command of a name, and adapt its arguments.
local function found(name, given)
  if name == 'put' and #given > 5 and #given % 2 == 0 then -- older clients send no worker name
    table.insert(given, 2, '')
  end
  if COMMANDS[name] then
    return name
  end
  local like = reqless()[name]
  if not like then
    qless_session.fail('Unknown command ' .. qless_texts.shown(name))
  elseif like[3] and not (name == 'job.completeAndRequeue' and #given % 2 == 1) then -- it may contain `next` already
    table.insert(given, math.min(2 + like[2], #given + 1), like[3])
  end
  return like[1]
end

-- The moment of a call, in milliseconds.
function qless.moment(text)
  local now = qless_texts.number(text)
  local stop = catalogue.time.high + 1
  if not now or now < 0 or now >= stop / 1000 then
    qless_session.fail('Arg "now" missing or not a number: ' .. qless_texts.shown(text))
  end
  return math.min(qless_texts.milliseconds(now), stop - 1)
end

-- Execute a command with its arguments.
function qless.execute(name, given)
  if #given > MOST then
    qless_session.fail('More than ' .. MOST .. ' arguments')
  end
  return COMMANDS[name](unpack(given))
end

-- The prefix of any command that makes it one of reqless, whose first versions have the names of qless.
local EARLY = 'reqless.'

local function execute(name, given)
  local early = string.sub(name, 1, #EARLY) == EARLY
  name = early and string.sub(name, #EARLY + 1) or name
  local is_reqless = early or not COMMANDS[name]
  local is_throttle = string.find(name, 'throttle.', 1, true)
  if early and (is_throttle or name == 'config.get' and #given > 1 or reqless()[name]) then -- `config.get` alone: all
    early = false
  end
  local command = found(name, given)
  qless_session.begin(qless.moment(table.remove(given, 1)), false, is_reqless, early)
  local reply = qless.execute(command, given)
  reply = JSON_LISTS[name] and qless_texts.quoted(reply) or reply
  return LISTS[name] and reply == '{}' and not early and '[]' or reply
end

-- Call a function; give its reply, or its error sentence. In a document, a caller that lost its job gets nothing.
function qless.guarded(called, ...)
  qless_session.raised = nil
  local done, reply = pcall(called, ...)
  local raised = qless_session.raised
  if done then
    return reply
  elseif not raised then
    error(reply, 0)
  end
  return nil, not (raised.by_state and qless_session.document) and raised.sentence or nil
end

-- Execute one call of the unified interface under a prefix; give its reply, or the sentence of its refusal. Clients bring
-- their own moment, but live in real time; a simulated call does not.
function qless.call(prefix, args, simulated)
  qless_session.simulated = simulated
  keys.begin(prefix)
  qless_session.document = false
  local name = table.remove(args, 1)
  if name == nil then
    return nil, 'Must provide a command'
  end
  return qless.guarded(execute, name, args)
end

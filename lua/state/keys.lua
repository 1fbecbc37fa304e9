-- The key schema. No other file builds a key. <p> is the prefix, `ql:` by default; the names are those of the qless
-- documents, and new ones follow their style. Values are packed where it pays:
--
--   <p>counters                  text: sequence, epoch, first event kept, retention bounds, how many jobs are tracked
--                                (state/store.lua); behind a `!` while <p>intent is to be done
--   <p>intent                    text: commands of a step that failed, which the next call does (state/intent.lua)
--   <p>aside:<name>              what another program had written under one of these names (state/repair.lua)
--   <p>dropped                   zset: ids in a list whose job was missing, when they were dropped
--   <p>config                    text: a line `option<TAB>value` for each option that is set (state/config.lua)
--   <p>!                         never exists between two steps (store.lua, backends/redis/confirm.py)
--   <p>events                    stream: ids `<sequence of the last event>-<epoch>`; one field, `e`: the events of a step,
--                                one a line: the moment, the event and its facts (state/store.lua)
--   <p>journal                   stream: ids `<number>-<epoch>`; a call and its outcome (state/journal.lua)
--   <p>journaled                 text: the number of the last entry
--   <p>journal-heavy             text: the number of the last heavy entry (state/journal.lua)
--   <p>j:<jid>                   text: the job's record (state/records.lua)
--   <p>j:<jid>-data              text: its data, if too long to rewrite with every step
--   <p>j:<jid>-dependencies      zset: the jobs that it waits for, and the requests as `<id> request`; score the edge's mark, 0 for
--                                a plain one
--   <p>j:<jid>-dependents        zset: the jobs that wait for it, likewise
--   <p>j:<jid>-results           hash: the outcomes of its named dependencies (state/results.lua)
--   <p>q:<queue>-work            zset: ready jobs; score priority, member <ready at:14><sequence:14><jid>, with 5 blanks
--                                before the jid if the last digit is 0; for lifo jobs both numbers are taken from
--                                10^14 - 1, and the first digit is one of !"#$%&'()*; of a job that stands by its age
--                                the score is less (state/aging.lua)
--   <p>turns:<priority>:<queue>  zset: its fair keys, `k<key>`, by their next turns, and `#`, which is minus the number of
--                                ready jobs with a turn: that stands in place of their ready time (state/turns.lua)
--   <p>q:<queue>-scheduled       zset: score ready at,   member <sequence:14><jid>
--   <p>q:<queue>-depends         zset: score put at,     member <sequence:14><jid>
--   <p>q:<queue>-throttled       zset: score ready at,   member <sequence:14><jid>
--   <p>q:<queue>-locks           zset: score expires at (-inf when stalled), member <sequence:14><19 blanks><jid>
--   <p>q:<queue>-expires         zset: jobs that have not started and may expire; score the last time to start, member
--                                <sequence:14><jid>
--   <p>q:<queue>-ends            zset: requests that may end by themselves; score when something is to be done
--   <p>q:<queue>-recur           zset: recurring jobs; score next due at, member <sequence:14><jid>
--   <p>q:<queue>-state           text: first seen, whether it has pauses, idle workers, due bound; then, if there are any,
--                                when the first run of a recurring job is due, when a job may expire or a request is due, and when a pop
--                                must check a throttle (state/queues.lua)
--   <p>q:<queue>-pauses          hash: reason -> until, for each pause (state/pauses.lua)
--   <p>q:<queue>-gates           zset: throttles with parked or admitted jobs, score when a pop checks (state/parked.lua)
--   <p>q:<queue>-wake            list: one element for each wake-up not yet used; idle workers block on it
--   <p>g:<queue>TAB<throttle>-parked   zset: jobs parked there; score priority, member <parked at sequence:14><jid>
--   <p>g:<queue>TAB<throttle>-let      zset: admitted jobs that wait for a claim; score priority, member <since:14><cost:7><jid>
--   <p>throttles                 zset: the throttles that have limits, score 0
--   <p>throttles-used            zset: the throttles with running or parked jobs, or such a text as follows, score 0
--   <p>th:<throttle>-state       text: its limits and the level of its bucket
--   <p>families                  text: the families of throttles (state/families.lua)
--   <p>th:<throttle>-family      text: its window and bucket under its family (state/throttles.lua)
--   <p>cooling                   zset: throttles with such a text, score until when
--   <p>th:<throttle>-held        zset: running and stalled jobs that name it, score the sequence of the claim
--   <p>th:<throttle>-claims      zset: the claims of its window; score when, member <sequence:14>
--   <p>th:<throttle>-queues      zset: queues with jobs parked at it, score 0
--   <p>r:<jid>                   hash: a recurring job (state/schedules.lua)
--   <p>recur-crons               zset: schedules that need more due times; score last known, member <sequence:14><jid>
--   <p>l:<key>                   zset: jobs of a concurrency key: score -inf and sequence 0 with a slot, else score ready
--                                at; member <sequence:14><jid> (state/concurrency_keys.lua)
--   <p>subscriptions             hash: name -> a subscription (state/subscriptions.lua)
--   <p>messages                  zset: published messages that are kept; score number, member <at:14><number>
--   <p>m:<number>                text: when a message is due, its subject, its data (state/messages.lua)
--   <p>rq:<request>              text: a request (state/requests.lua)
--   <p>rj:<request>              zset: its sub-requests by id, score 1 until they have ended, or 2 if they were given
--                                dependencies, then minus the sequence of the end and a digit: 1 done, 2 failed, 3 canceled
--   <p>ro:<request>              list: its sub-requests in the order in which they were added
--   <p>rt:<request>              text: its data, if it has any
--   <p>rd:<request>              zset: the jobs that wait for its end; score the edge's mark
--   <p>rq-<state>                zset: requests in a state; score since when, member <sequence:14><id>
--   <p>queues                    zset: queues by time first seen
--   <p>workers                   zset: workers by time last seen
--   <p>workers-passed            text: how many silent workers that hold leases the sweep has passed (state/workers.lua)
--   <p>w:<worker>:jobs           hash: `` -> last seen, in 65 characters, `j<jid>` -> sequence, `r<request>` -> jids
--                                granted, by spaces
--   <p>cascade                   zset: failed jobs and ended requests whose dependents are not processed yet (state/cascade.lua)
--   <p>n:<klass>                 zset: complete jobs of a type with keep_newest; score ended at, member <sequence:14><jid>
--   <p>completed                 zset: score ended at, member <sequence:14><jid>
--   <p>failed                    zset: failed jobs that may be deleted; score ended at, member <sequence:14><jid>
--   <p>keeping                   zset: ended jobs with their own retention; score until when, 0 for not at all, member
--                                <sequence:14><jid> (state/retention.lua)
--   <p>failures                  zset: the failure groups, score 0
--   <p>f:<group>                 zset: score ended at, member <sequence:14><jid>
--   <p>t:<tag>                   zset: score sequence of the tagging, member jid
--   <p>tags                      zset: score minus the number of jobs, member tag
--   <p>tracked                   zset: score sequence of the tracking, member jid
--   <p>s                         zset: score day, member <day>:<queue>: the days with statistics
--   <p>s:wait:<day>:<queue>, <p>s:run:<day>:<queue>            text: folded statistics (state/stats.lua)
--   <p>s:wait-new:<day>:<queue>, <p>s:run-new:<day>:<queue>    list: durations not yet folded in; with a run, its minute
--   <p>s:stats:<day>:<queue>     hash: failures, failed, retries
--   <p>s:tags:<day>:<queue>      hash: tag -> folded waits and runs of the jobs with it, with a newline between them
--   <p>s:tags-new:<day>:<queue>  list: durations not yet folded in, each with its tags
--   <p>s:workers:<day>:<queue>   hash: worker -> the same
--   <p>s:minutes:<day>:<queue>   hash: <minute of the day> and c, f, r, m: completed, failed, retried, run ms
--   <p>s-minutes                 zset: score day, member <day>:<queue>: the days that still have minutes
--   <p>uniques                   hash: deduplication key -> its holder (state/uniques.lua)
--   <p>unique-ends               zset: score the end of a key that has one of its own, member key
--   <p>k:<klass>                 hash: key -> text, the metadata of a klass
--   <p>requests                  hash: <operation> <request> -> reply; the first one is filled up to 65 characters
--   <p>requests-order            zset: score order, member <operation> <request>
--
-- Every put, pop and completion changes the order, the leases and the worker's hash. While these are short, a server keeps
-- them in one piece of memory without an index, and scans that with each change; but not if a member, a field or a value
-- has more than 64 bytes. So they are filled up with blanks, such that ids of 32 characters are long enough. In the order,
-- where jobs may wait in millions, one of ten members is enough.
--
-- A sequence has fourteen digits in a member, so that members order as numbers do. Job ids may not end in the suffixes
-- that follow an id here (arguments.lua); every queue key ends in exactly one of its suffixes.

local keys = {}

local ALONE = {
  'cascade', 'queues', 'workers', 'completed', 'failed', 'failures', 'tags', 'tracked',
  's', 's-minutes', 'requests', 'requests-order', 'workers-passed', 'recur-crons', 'throttles', 'throttles-used', 'uniques', 'unique-ends',
  'messages', 'subscriptions', 'keeping', 'journal', 'journaled', 'journal-heavy', 'intent', 'dropped', 'families',
  'cooling',
}

local NAMESPACES = 256 -- the most namespaces of which anything is kept
local MOST = 200 -- the most cached keys
local LAST = 99999999999999 -- the greatest number of fourteen digits
local ZERO, BLANK = 48, 32 -- the codes of these characters

local worker, worker_key -- the last one used
local pending, count, pending_day -- kind -> queue -> key of the durations of a day; their number; the day

local function forget_pending(day)
  pending, count, pending_day = {wait = {}, run = {}, tags = {}}, 0, day
end

-- ---- namespaces
--
-- Many namespaces may share a server, and each call may name another one. So what is kept from call to call is kept for
-- each of them: its keys, and what `queues`, `config`, `store` and `epochs` have decoded. Here it is exchanged.

-- A variable that holds what is kept is called `namespace`: the bundle replaces its fields by list indexes.
keys.fields = {
  'alone', 'counters_key', 'config_key', 'events_key', 'guard_key', 'worker', 'worker_key', 'pending', 'pending_count',
  'pending_day', 'queues', 'config_text', 'options', 'beats', 'rates', 'owners', 'padded_for', 'padded', 'counters', 'seq',
  'epoch', 'bounds_text', 'bounds_of', 'bounds', 'tracks', 'left', 'is_pending', 'calm', 'calm_config', 'own', 'suffix_for', 'suffix',
  'workers', 'many_workers',
}

local kept, number = {}, 0 -- prefix -> what is kept; how many
local namespace -- what is kept of the present one
local others = {} -- the metatable of `keys`: so the keys that stand alone are exchanged at once

local function create(prefix)
  if number == NAMESPACES then
    kept, number = {}, 0
  end
  local alone = {}
  for _, name in ipairs(ALONE) do
    alone[name] = prefix .. name
  end
  local made = {
    alone, prefix .. 'counters', prefix .. 'config', prefix .. 'events', prefix .. '!', false, false,
    {wait = {}, run = {}, tags = {}}, 0, false, {}, false, false, {}, {}, {}, false, false, false, false, false, false,
    false, false, false, false, false, false, false, false, '0', '-0', {}, 0,
  }
  kept[prefix], number = made, number + 1
  return made
end

-- (What is done in a row of plain operations changes nothing but the counters.)
local function leave()
  if not store.changed then
    return store.keep_counters(namespace)
  end
  namespace.worker, namespace.worker_key, namespace.pending, namespace.pending_count, namespace.pending_day =
    worker, worker_key, pending, count, pending_day
  queues.keep(namespace)
  workers.keep(namespace)
  config.keep(namespace)
  epochs.keep(namespace)
  store.keep(namespace)
end

local function enter()
  others.__index = namespace.alone
  keys.counters, keys.config, keys.events, keys.guard =
    namespace.counters_key, namespace.config_key, namespace.events_key, namespace.guard_key
  worker, worker_key, pending, count, pending_day =
    namespace.worker, namespace.worker_key, namespace.pending, namespace.pending_count, namespace.pending_day
  queues.recall(namespace)
  workers.recall(namespace)
  config.recall(namespace)
  epochs.recall(namespace)
  store.recall(namespace)
  store.changed = false
end

-- Build keys under a prefix from now on, and use what is kept of its namespace.
function keys.begin(prefix)
  if keys.prefix ~= prefix then
    if namespace then
      leave()
    else
      setmetatable(keys, others)
    end
    keys.prefix, namespace = prefix, kept[prefix] or create(prefix)
    enter()
  end
end

-- Forget what is kept of all namespaces but the present one.
function keys.forget_others()
  kept, number = {[keys.prefix] = namespace}, 1
end

-- A key that stands alone, by its name.
function keys.alone(name)
  return keys.prefix .. name
end

-- The name under which a key is kept that another program has written.
function keys.aside(key)
  return keys.prefix .. 'aside:' .. string.sub(key, #keys.prefix + 1)
end

function keys.job(jid)
  return keys.prefix .. 'j:' .. jid
end

function keys.schedule(jid)
  return keys.prefix .. 'r:' .. jid
end

function keys.newest(klass)
  return keys.prefix .. 'n:' .. klass
end

function keys.concurrency_key(name)
  return keys.prefix .. 'l:' .. name
end

function keys.message(seq)
  return keys.prefix .. 'm:' .. seq
end

function keys.request(id)
  return keys.prefix .. 'rq:' .. id
end

function keys.request_order(id)
  return keys.prefix .. 'ro:' .. id
end

function keys.request_data(id)
  return keys.prefix .. 'rt:' .. id
end

function keys.sub_requests(id)
  return keys.prefix .. 'rj:' .. id
end

function keys.request_dependents(id)
  return keys.prefix .. 'rd:' .. id
end

function keys.requests_in(state)
  return keys.prefix .. 'rq-' .. state
end

function keys.queue(name, part)
  return keys.prefix .. 'q:' .. name .. part
end

function keys.turns(queue, priority)
  return keys.prefix .. 'turns:' .. priority .. ':' .. queue
end

function keys.worker(name)
  if worker ~= name then
    worker, worker_key = name, keys.prefix .. 'w:' .. name .. ':jobs'
  end
  return worker_key
end

function keys.throttle(name, part)
  return keys.prefix .. 'th:' .. name .. part
end

-- A throttle as a queue sees it. No name holds a tab.
function keys.parked(queue, name, part)
  return keys.prefix .. 'g:' .. queue .. '\t' .. name .. part
end

function keys.group(name)
  return keys.prefix .. 'f:' .. name
end

function keys.metadata(klass)
  return keys.prefix .. 'k:' .. klass
end

function keys.tag(name)
  return keys.prefix .. 't:' .. name
end

function keys.stats(kind, day, queue)
  return keys.prefix .. 's:' .. kind .. ':' .. day .. ':' .. queue
end

-- The channel of a dialect's messages.
function keys.channel(name)
  return keys.prefix .. name
end

-- The durations of a day that are not folded yet: waits, runs, or those of tags.
function keys.pending(kind, day, queue)
  if day ~= pending_day or count == MOST then
    forget_pending(day)
  end
  local key = pending[kind][queue]
  if not key then
    key = keys.stats(kind .. '-new', store.text(day), queue)
    pending[kind][queue], count = key, count + 1
  end
  return key
end

-- The zeros before a number, by its number of digits.
local ZEROS = {
  '0000000000000', '000000000000', '00000000000', '0000000000', '000000000', '00000000', '0000000', '000000', '00000',
  '0000', '000', '00', '0', '',
}

-- A member that orders by sequence, and the job id in it.
function keys.member(seq, jid)
  local text = store.numbers[seq] or seq .. ''
  return ZEROS[#text] .. text .. jid
end

-- The same for the leases.
function keys.lease_member(seq, jid)
  return keys.lease_member_of(store.numbers[seq] or seq .. '', jid)
end

-- The same two for numbers that are text.
function keys.member_of(text, jid)
  return ZEROS[#text] .. text .. jid
end

-- The members of several jobs, each behind the same score, with what stands between the sequence and the id.
local function scored(ids, jids, score, between)
  local found = store.list(2 * #ids)
  for i = 1, #ids do
    local id = ids[i]
    found[2 * i - 1] = score
    found[2 * i] = ZEROS[#id] .. id .. between .. jids[i]
  end
  return found
end

function keys.members_of(ids, jids, score)
  return scored(ids, jids, score, '')
end

-- The leases of several jobs that end at one moment, likewise.
function keys.leases_of(ids, jids, ends)
  return scored(ids, jids, ends, '                   ')
end

function keys.lease_member_of(text, jid)
  return ZEROS[#text] .. text .. '                   ' .. jid
end

function keys.ready_member_of(at, text, jid)
  if string.byte(text, -1) == ZERO then
    return ZEROS[#at] .. at .. ZEROS[#text] .. text .. '     ' .. jid
  end
  return ZEROS[#at] .. at .. ZEROS[#text] .. text .. jid
end

-- The ready members of several jobs, each behind the same score, with sequences that follow each other; the moment is text.
function keys.ready_members_of(at, ids, jids, score)
  local found, before, behind = store.list(2 * #ids), ZEROS[#at] .. at, ids[1] - 1
  for i = 1, #ids do
    local id = ids[i]
    found[2 * i - 1] = score
    if (behind + i) % 10 == 0 then
      found[2 * i] = before .. ZEROS[#id] .. id .. '     ' .. jids[i]
    else
      found[2 * i] = before .. ZEROS[#id] .. id .. jids[i]
    end
  end
  return found
end

function keys.ready_member(ready_at, seq, jid)
  return keys.ready_member_of(store.numbers[ready_at] or ready_at .. '', store.numbers[seq] or seq .. '', jid)
end

-- Below all those, and the later the lower: what is missing to all nines, the first digit moved below the zero.
function keys.lifo_member(ready_at, seq, jid)
  local at, text = store.text(LAST - ready_at), store.text(LAST - seq)
  at = ZEROS[#at] .. at
  return string.char(string.byte(at) - 15) .. string.sub(at, 2) .. ZEROS[#text] .. text
    .. (string.byte(text, -1) == ZERO and '     ' or '') .. jid
end

-- The two numbers by which a ready job's member orders it; of a lifo job they are below zero.
function keys.ready_rank(member)
  local first, seq = string.byte(member), tonumber(string.sub(member, 15, 28))
  if first < 48 then
    return tonumber(string.char(first + 15) .. string.sub(member, 2, 14)) - LAST - 1, seq - LAST
  end
  return tonumber(string.sub(member, 1, 14)), seq
end

function keys.jid_of(member)
  return string.sub(member, string.byte(member, 15) == BLANK and 34 or 15)
end

-- The jobs of ready members, which stand in a list with their scores: their ids and their keys.
function keys.ready_jobs_of(popped)
  local jids, job_keys, before, found = store.list(#popped / 2), store.list(#popped / 2), keys.prefix .. 'j:', 0
  for i = 1, #popped, 2 do
    local member = popped[i]
    local jid = string.sub(member, string.byte(member, 29) == BLANK and 34 or 29)
    found = found + 1
    jids[found] = jid
    job_keys[found] = before .. jid
  end
  return jids, job_keys
end

function keys.ready_jid_of(member)
  return string.sub(member, string.byte(member, 29) == BLANK and 34 or 29)
end

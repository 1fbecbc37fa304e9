-- The budget: how much work one operation may do. The rules and the units are described in
-- qmodel/model/state/budget.py.

local budget = {}

budget.UNITS = 4000

budget.FAILURE = 2
budget.SLOT = 3
budget.THROTTLE = 6
budget.QUEUE = 2
budget.ALONE = 4
local TURN = 3 -- for giving a job its turn in a fair queue
budget.LEASES = 2
budget.BLOCK = 3072

budget.HOLDERS = 25 -- how many of the jobs that hold a throttle are shown

local INLINE = 1024
local SEARCHED = 1024
local FEW_TAGS = 16
local FEW, PART = 4, 100 -- the fewest and the most records that are read with one command
local LARGE = 40 -- the units of a record of which only a few are read at once

local OF_PUT = {
  'lifo', 'lease_ms', 'dead_queue', 'ttl_ms', 'timeout_ms', 'keep_complete_ms', 'keep_failed_ms', 'keep_newest',
  'throttles',
  'cost', 'ordered', 'max_lapses', 'retry_delay_ms', 'retry_delay_max_ms', 'fair_key',
  'fair_weight', 'unique',
}

local left, cut = 0, false -- the units that are left to the operation, and whether it leaves work to the next one

-- Start an operation with a full budget.
function budget.begin()
  left, cut = budget.UNITS, false
end

-- Take units from the budget.
function budget.spend(units)
  left = left - units
end

-- The units that are left.
function budget.room()
  return left
end

-- Whether units fit into the budget and leave `kept`. If not, the operation leaves work to the next one.
function budget.fits(units, kept)
  if left - units >= kept then
    return true
  end
  cut = true
  return false
end

-- Spend units if they fit into the budget and leave `kept`, which is asked only after `some` others.
function budget.take(units, kept, some)
  if some and not budget.fits(units, kept) then
    return false
  end
  budget.spend(units)
  return true
end

-- How many of some things the budget has room for, at least one unless there were `some` before; spend it.
function budget.afford(found, units_of, some)
  for i = 1, #found do
    if not budget.take(units_of(found[i]), 0, i > 1 or some) then
      return i - 1
    end
  end
  return #found
end

-- Whether the operation leaves work to the next one.
function budget.is_cut()
  return cut
end

-- The bytes of data that are not kept within the record.
local function apart(size)
  return size > INLINE and size or 0
end

local function blocks(bytes)
  return math.floor(bytes / budget.BLOCK)
end

local counted, number = '', 0 -- the tags counted last, and how many they are

-- The units for a history, which may have long lines if it is long.
local function of_history(stages)
  return math.floor(stages / 4) * 2 + math.floor(stages / 16) * 8
end

local function tags_of(job)
  if job.tags ~= counted then
    local _, between = string.gsub(job.tags, '\255', '')
    counted, number = job.tags, job.tags == '' and 0 or between + 1
  end
  return number
end

-- The units for the texts in a job's record: each is copied several times when it moves.
function budget.of_texts(job)
  return 4 * blocks(#job.result + #job.progress + #job.message)
end

-- The units for moving a job from one state to another.
function budget.moving(job)
  local units = 2 + of_history(job.stages) + math.floor(tags_of(job) / FEW_TAGS) + budget.of_texts(job)
  if job.options == '' then
    return units
  end
  units = units + options.size(job)
  return options.get(job, 'throttles') and units + 2 * #throttles.named(job) or units
end

-- How many of some jobs to read for a caller that stops where its budget ends: those that exceed it, and the next one,
-- which the caller leaves. So a step does not read a thousand large records to move a few.
function budget.reach(jids)
  if #jids < 2 then
    return #jids
  end
  local units, size, read = 0, FEW, 0 -- how many to read at once, more each time; how many are read
  for i = 1, #jids do
    if i > read then
      read = math.min(read + size, #jids)
      records.prefetch({unpack(jids, i, read)})
      size = math.min(2 * size, PART)
    end
    local job = records.get(jids[i])
    local more = job and budget.moving(job) or 0
    units = units + more
    if units > left then
      return math.min(i + 1, #jids)
    elseif more > LARGE then
      size = FEW
    end
  end
  return #jids
end

-- The units for showing or deleting a job.
function budget.weight(job)
  local units = budget.moving(job) + tags_of(job)
  if job.apart == '1' then
    units = units + blocks(apart(records.data_size(job)))
  end
  return units + job.waits + job.waited_for
end

-- The units for searching a text in a job's data.
function budget.searching(job)
  return math.floor((job.apart == '1' and records.data_size(job) or #job.data) / SEARCHED)
end

-- The units for failing a job, beside those for ending it: also for its dead letter, if it has a dead queue.
function budget.failing(job)
  return budget.FAILURE + (options.get(job, 'dead_queue') and budget.weight(job) or 0)
end

-- The units for showing a job again that a reply has shown.
function budget.of_shown(view)
  local job = records.decode(view[1], '', view[3])
  local bytes = apart(#(view[4] or '')) + #job.result + #job.progress
  local edges = #(view[6] or {}) + #(view[7] or {})
  return math.floor(job.stages / 4) * 2 + tags_of(job) + edges + blocks(bytes)
end

-- The units for reading the bytes of an entry of the journal, and the units of its jobs. Such bytes are read, taken
-- apart and written: they cost twice what others cost.
function budget.of_entry(bytes, units)
  return 2 * (blocks(bytes) + units)
end

-- The units for showing an outcome of this many bytes.
function budget.of_result(bytes)
  return 1 + blocks(bytes)
end

-- The units for the turn of a new job of a queue.
local function of_turn(queue)
  return config.is_fair(queue) and TURN or 0
end

-- The units for the arguments of a put.
function budget.of_put(op)
  local units = 2 + blocks(apart(#op.data)) + of_turn(op.queue)
  if not op.named then
    return units
  end
  for _, name in ipairs(OF_PUT) do
    units = units + (op[name] ~= nil and 1 or 0)
  end
  return units + #(op.tags or {}) + #(op.depends or {}) + 2 * #(op.throttles or {})
end

-- The units for making a run of a schedule.
function budget.of_run(schedule)
  return 4 + of_turn(schedule.queue) + #schedule.tags + blocks(apart(#schedule.data))
end

-- The units for making the job of a message.
function budget.of_delivery(subscription, message)
  return 4 + of_turn(subscription.queue) + #(subscription.tags or {}) + blocks(apart(#message.data))
end

-- The units for looking at the leases of a worker with so many entries.
function budget.of_leases(entries)
  return math.floor(entries / budget.LEASES)
end

-- The units for showing a throttle with so many running jobs, and jobs parked in so many queues.
function budget.of_throttle(running, queues_)
  return 3 + math.floor(math.min(running, budget.HOLDERS) / 8) + math.floor(math.min(queues_, catalogue.most) / 4)
end

-- The units for showing a message.
function budget.of_message(message)
  return 1 + blocks(#message.data)
end

-- Refuse more units than one operation may do for more than one item.
function budget.check(operation, items, units)
  if units > budget.UNITS and items > 1 then
    local few = math.max(math.floor(items * budget.UNITS / units), 1)
    refusals.refuse('OVER_BUDGET', operation, units, budget.UNITS, few)
  end
end

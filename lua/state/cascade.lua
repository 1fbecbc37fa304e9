-- The cascade: failed jobs and ended requests with dependents that are yet to be processed. The rules are described in
-- qmodel/model/state/cascade.py.
--
-- Within an operation it is a list in store.cascade, which also serves as a set of its entries. Entries left at the end
-- go to a sorted set, scored by minus the position in the stack; their number is among the counters, so that an empty
-- cascade costs no command.

local cascade = {}

-- Push a failed job, to process its dependents or to cancel it, or an ended request, unless it is on the stack already.
function cascade.push(job, cancels)
  local entry = (cancels and 'c' or 'f') .. keys.member(job.seq, job.jid)
  store.cascade = store.cascade or {}
  local list = store.cascade
  if not list[entry] and not (store.left > 0 and writes.fetch('ZSCORE', keys.cascade, entry)) then
    list[#list + 1], list[entry] = entry, true
  end
end

-- Whether the stack has entries.
function cascade.is_left()
  return store.cascade and #store.cascade > 0 or store.left > 0
end

-- Pop the last entry: the job or what stands for the request, or false if it has changed since, and whether it is to be canceled.
function cascade.take()
  local entry = store.cascade and table.remove(store.cascade)
  if entry then
    store.cascade[entry] = nil
  else
    entry = writes.pop_first(keys.cascade)[1]
    store.bound('cascade', store.left - 1)
  end
  local kind, member = string.sub(entry, 1, 1), string.sub(entry, 2)
  local jid = keys.jid_of(member)
  local id = arguments.awaited_request(jid)
  if id then
    local request = requests.get(id)
    return request and requests.has_ended(request) and dependencies.record_of(request), false
  end
  local job = jobs.get(jid)
  local is_as_it_was = job and job.state == 'failed' and keys.member(job.seq, job.jid) == member
  return is_as_it_was and job, kind == 'c'
end

-- Leave the remaining entries to the next operation.
function cascade.flush()
  local list = store.cascade
  if #list > 0 then
    local left = store.left
    for i, entry in ipairs(list) do
      store.add(keys.cascade, -left - i, entry)
    end
    store.bound('cascade', left + #list)
  end
end

-- How a request ends. The rules are described in qmodel/model/state/requests.py.

local request_end = {}

-- Cancel the request of a sub-request that has failed, if it says so: before the slot of the sub-request is free.
function request_end.fail_fast(now, job)
  local id = job.state == 'failed' and options.get(job, 'request')
  if not id then
    return
  end
  local request = requests.load(id)
  if request.fail_fast == 1 and request.state ~= 'canceling' then
    request_end.begin_cancellation(now, request, 'failed')
    queues.wake_one(request.queue)
  end
end

-- Count an ended sub-request in its request.
function request_end.sub_ended(now, job)
  local id = options.get(job, 'request')
  if not id then
    return
  end
  options.drop(job, 'request')
  local request = requests.load(id)
  if job.state == 'complete' then
    requests.finish(request, job, 'done')
  elseif job.state == 'failed' and (request.state ~= 'canceling' or request.reason == 'failed') then
    requests.finish(request, job, 'failed')
  else
    requests.finish(request, job, 'canceled')
  end
  request_end.conclude(now, request)
end

-- Let the next pops of its queue cancel a request (rules/request_cancellation.lua).
function request_end.begin_cancellation(now, request, reason)
  store.emit(now, 'request_canceled', request.id, reason)
  if request.state ~= 'canceling' then
    requests.move(now, request, 'canceling')
  end
  request.reason, request.ending, request.reached = reason, 1, false
  requests.save(request)
end

-- Close an open request.
function request_end.close(now, request, reason)
  if request.state == 'open' then
    store.emit(now, 'request_closed', request.id, reason)
    requests.move(now, request, 'closed')
    request.reason = reason or '-'
    request_end.conclude(now, request)
  end
end

-- End a request that has no work left. The jobs that wait for it go on at the end of the operation.
function request_end.conclude(now, request)
  if (request.state == 'closed' or request.state == 'canceling') and requests.left(request) == 0 then
    local state = request.state == 'closed' and 'done' or 'canceled'
    store.emit(
      now, 'request_done', request.id, request.queue, state, request.done, request.failed, request.canceled
    )
    requests.move(now, request, state)
    if dependencies.count(request) > 0 then
      cascade.push(dependencies.record_of(request))
    end
  end
  requests.save(request)
end

-- How a request ends. The rules are described in qmodel/model/state/requests.py.

local request_end = {}

-- Count an ended sub-request in its request.
function request_end.sub_ended(now, job)
  local id = options.get(job, 'request')
  if not id then
    return
  end
  options.drop(job, 'request')
  local request = requests.load(id)
  if job.state == 'complete' then
    requests.finish(request, job.jid, 'done')
  elseif job.state == 'failed' and request.state ~= 'canceling' then
    requests.finish(request, job.jid, 'failed')
  else
    requests.finish(request, job.jid, 'canceled')
  end
  request_end.conclude(now, request)
end

-- End a request that has no work left.
function request_end.conclude(now, request)
  if (request.state == 'closed' or request.state == 'canceling') and requests.left(request) == 0 then
    local state = request.state == 'closed' and 'done' or 'canceled'
    store.emit(
      now, 'request_done', request.id, request.queue, state, request.done, request.failed, request.canceled
    )
    requests.move(now, request, state)
  end
  requests.save(request)
end

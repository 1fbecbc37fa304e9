-- How a request ends. What holds of requests is told in qmodel/state/requested.py.

local concluding = {}

-- Tell its request of the end of a sub-request.
function concluding.sub_ended(now, job)
  local id = options.get(job, 'request')
  if not id then
    return
  end
  options.drop(job, 'request')
  local request = requested.load(id)
  if job.state == 'complete' then
    requested.finish(request, job.jid, 'done')
  elseif job.state == 'failed' and request.state ~= 'canceling' then
    requested.finish(request, job.jid, 'failed')
  else
    requested.finish(request, job.jid, 'canceled')
  end
  concluding.conclude(now, request)
end

-- Let a request end of which nothing is to come any more.
function concluding.conclude(now, request)
  if (request.state == 'closed' or request.state == 'canceling') and requested.left(request) == 0 then
    local state = request.state == 'closed' and 'done' or 'canceled'
    store.emit(
      now, 'request_done', request.id, request.queue, state, request.done, request.failed, request.canceled
    )
    requested.move(now, request, state)
  end
  requested.save(request)
end

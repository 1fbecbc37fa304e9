-- What a job holds besides its place is let go of here, however it ends.
--
-- Called right after a job has ended (complete, failed, or deleted), and when a put begins it anew. A plain job has no
-- options and holds nothing. A job may be settled twice (it failed, and is canceled later): whoever adds a line here lets
-- go of what is still held, and of nothing else.

local cleanup = {}

-- Release what a job held that has ended, or starts anew.
function cleanup.clean_up(now, job)
  if job.options == '' then
    return
  end
  recurrence.run_ended(now, job)
  concurrency.release_slot(now, job)
  request_end.sub_ended(now, job)
  if job.state == 'complete' then
    results.forget(job)
  end
  deduplication.release_key(now, job)
end

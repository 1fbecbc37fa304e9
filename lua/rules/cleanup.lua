-- Cleanup: release everything that a job holds when it ends.
--
-- Called right after a job has ended (complete, failed, or deleted), and when a put starts it anew. A plain job has no
-- options and holds nothing. A job may be cleaned up twice (it failed, and is canceled later), so each rule here must
-- release only what is still held.

local cleanup = {}

-- Release what a job held that has ended, or starts anew.
function cleanup.clean_up(now, job)
  if job.options == '' then
    return
  end
  recurrence.run_ended(now, job)
  request_end.fail_fast(now, job)
  concurrency.release_slot(now, job)
  request_end.sub_ended(now, job)
  if job.state == 'complete' then
    results.forget(job)
  end
  deduplication.release_key(now, job)
end

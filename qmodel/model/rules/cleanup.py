"""Cleanup: release everything that a job holds when it ends.

Called right after a job has ended (complete, failed, or deleted), and when a put starts it anew. A plain job has no
options and holds nothing. A job may be cleaned up twice (it failed, and is canceled later), so each rule here must
release only what is still held.
"""

from __future__ import annotations

from qmodel.model.rules import deduplication
from qmodel.model.rules.concurrency import release_slot
from qmodel.model.rules.recurrence import run_ended
from qmodel.model.rules.request_end import fail_fast, sub_ended
from qmodel.model.state import results
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


def clean_up(store: Store, now: int, job: Job) -> None:
    """Release what a job held that has ended, or starts anew."""
    if not job.options:
        return
    run_ended(store, now, job)
    fail_fast(store, now, job)
    release_slot(store, now, job)
    sub_ended(store, now, job)
    if job.state == "complete":
        results.forget(store, job)
    deduplication.release_key(store, now, job)

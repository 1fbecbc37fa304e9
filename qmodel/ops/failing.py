"""Failed jobs: looking at them by group, and trying them again."""

from __future__ import annotations

from qmodel.operations import Failed, FailedGroups, RetryMany, Unfail
from qmodel.ops.lining import place
from qmodel.ops.putting import enter
from qmodel.ops.searching import bulk, filter, find
from qmodel.replies import Bulk, Page, Tally
from qmodel.state import failures, jobs, queues, stats
from qmodel.state.jobs import Job
from qmodel.state.store import Store, emit


def failed_groups(store: Store, now: int, op: FailedGroups) -> tuple[Tally, ...]:
    """List the groups by name."""
    return tuple(Tally(name, size) for name, size in failures.groups(store, op.offset, op.count))


def failed(store: Store, now: int, op: Failed) -> Page:
    """List the jobs of a group, latest first."""
    return Page(*failures.page(store, op.group, op.offset, op.count))


def _unfail(store: Store, now: int, job: Job, queue: str) -> None:
    """Let a failed job begin anew in a queue."""
    assert job.failure is not None
    queues.register(store, now, queue)
    stats.recovered(store, job.ended_at, job.queue)
    jobs.lift(store, job)
    job.ended_at = 0
    state = enter(store, now, job, queue, 0)
    emit(store, now, "unfailed", job.jid, queue, job.failure.group, state)
    place(store, now, job, state)


def unfail(store: Store, now: int, op: Unfail) -> int:
    """Move the longest failed jobs of a group to a queue."""
    moved = failures.oldest(store, op.group, op.count)
    for job in moved:
        _unfail(store, now, job, op.queue)
    return len(moved)


def retry_many(store: Store, now: int, op: RetryMany) -> Bulk:
    """Put failed jobs back into their own queues."""
    found, cursor = find(store, now, "retry_many", op, filter(op, "failed"))

    def act(job: Job) -> bool:
        _unfail(store, now, job, job.queue)
        return True

    return bulk(store, op.preview, found, cursor, act)

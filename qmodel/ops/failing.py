"""Failed jobs: looking at them by group, and trying them again."""

from __future__ import annotations

from qmodel.operations import Failed, FailedGroups, Unfail
from qmodel.ops.lining import place
from qmodel.ops.putting import enter
from qmodel.replies import Page, Tally
from qmodel.state import failures, jobs, queues, stats
from qmodel.state.store import Store, emit


def failed_groups(store: Store, now: int, op: FailedGroups) -> tuple[Tally, ...]:
    """List the groups by name."""
    return tuple(Tally(name, size) for name, size in failures.groups(store, op.offset, op.count))


def failed(store: Store, now: int, op: Failed) -> Page:
    """List the jobs of a group, latest first."""
    return Page(*failures.page(store, op.group, op.offset, op.count))


def unfail(store: Store, now: int, op: Unfail) -> int:
    """Move the longest failed jobs of a group to a queue."""
    moved = failures.oldest(store, op.group, op.count)
    for job in moved:
        queues.register(store, now, op.queue)
        stats.recovered(store, job.ended_at, job.queue)
        jobs.lift(store, job)
        state = enter(store, now, job, op.queue, 0)
        emit(store, now, "unfailed", job.jid, op.queue, op.group, state)
        place(store, now, job, state)
    return len(moved)

"""Failed jobs: looking at them by group, and trying them again."""

from __future__ import annotations

from qmodel.contract.operations import Cancel, Failed, FailedGroups, Put, Replay, RetryMany, Unfail
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Bulk, Page, Tally
from qmodel.model.ops.put import put
from qmodel.model.ops.remove import cancel
from qmodel.model.rules.concurrency import place
from qmodel.model.rules.selection import bulk, filter, find
from qmodel.model.rules.stages import enter
from qmodel.model.state import dependencies, failures, jobs, options, queues, stats
from qmodel.model.state.jobs import Job
from qmodel.model.state.store import Store, emit


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


def replay(store: Store, now: int, op: Replay) -> str:
    """Put the job of a dead letter anew, and delete the letter."""
    letter = jobs.find(store, op.jid)
    origin = options.get(letter, "origin")
    if origin is None:
        raise refuse("NOT_A_DEAD_LETTER", op.jid)
    if letter.state == "complete":
        raise refuse("WRONG_STATE", op.jid, letter.state)
    job = jobs.get(store, origin)
    if job is not None and job.state != "failed":
        raise refuse("WRONG_STATE", origin, job.state)
    for dependent in dependencies.dependents(letter):
        raise refuse("HAS_DEPENDENTS", op.jid, dependent)
    dependencies.check_bounded(letter)

    again = _again(letter, origin)
    cancel(store, now, Cancel((op.jid,)))
    return put(store, now, again)


def _again(letter: Job, origin: str) -> Put:
    """The put that begins the job anew of which this is a dead letter."""
    lease, timeout = options.get(letter, "lease_ms"), options.get(letter, "timeout_ms")
    return Put(
        letter.options["origin_queue"],
        origin,
        letter.klass,
        letter.data,
        letter.priority,
        retries=letter.retries,
        tags=tuple(letter.tags),
        lifo=True if options.get(letter, "lifo") else None,
        lease_ms=int(lease) if lease is not None else None,
        timeout_ms=int(timeout) if timeout is not None else None,
        dead_queue=letter.options["origin_dead_queue"],
    )

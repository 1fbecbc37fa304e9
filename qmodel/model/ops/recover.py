"""Failed jobs: listing them by group, and retrying them."""

from __future__ import annotations

from qmodel.contract.operations import Cancel, Failed, FailedGroups, Put, Replay, RetryMany
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Bulk, Page, Tally
from qmodel.model.ops.put import put
from qmodel.model.ops.remove import cancel
from qmodel.model.rules.concurrency import place
from qmodel.model.rules.selection import bulk, filter, find
from qmodel.model.rules.stages import enter
from qmodel.model.state import budget, dependencies, failures, jobs, options, queues, stats
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def failed_groups(store: Store, now: int, op: FailedGroups) -> tuple[Tally, ...]:
    """List the groups by name."""
    return tuple(Tally(name, size) for name, size in failures.groups(store, op.offset, op.count))


def failed(store: Store, now: int, op: Failed) -> Page:
    """List the jobs of a group, latest first."""
    return Page(*failures.page(store, op.group, op.offset, op.count))


def _named(store: Store, now: int, op: RetryMany, jids: tuple[str, ...]) -> tuple[list[Job], str]:
    """The failed jobs among the named ones; a list has no cursor."""
    if op.cursor:
        raise refuse("BAD_ARGUMENT", "retry_many", "cursor")
    wanted = filter(op, "failed")
    found = [jobs.get(store, jid) for jid in dict.fromkeys(jids)]
    named = [job for job in found if job is not None and jobs.fits(now, job, wanted)][: op.count]
    budget.check("retry_many", len(named), sum(budget.weight(job) for job in named))
    return named, ""


def _retry(store: Store, now: int, job: Job, queue: str) -> None:
    """Let a failed job begin anew in a queue."""
    assert job.failure is not None
    queues.register(store, now, queue)
    stats.recovered(store, job.ended_at, job.queue)
    jobs.lift(store, job)
    job.ended_at = 0
    state = enter(store, now, job, queue, now)
    emit(store, now, "unfailed", job.jid, queue, job.failure.group, state)
    place(store, now, job, state)


def retry_many(store: Store, now: int, op: RetryMany) -> Bulk:
    """Retry failed jobs, in their own queues or in another one."""
    if op.jids is None:
        found, cursor = find(store, now, "retry_many", op, filter(op, "failed"))
    else:
        found, cursor = _named(store, now, op, op.jids)

    def act(job: Job) -> bool:
        _retry(store, now, job, job.queue if op.to is None else op.to)
        return True

    return bulk(store, op.preview, found, cursor, act)


def replay(store: Store, now: int, op: Replay) -> str:
    """Put the original job of a dead letter again, and delete the letter."""
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
    """The put that starts the original job of a dead letter again."""
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

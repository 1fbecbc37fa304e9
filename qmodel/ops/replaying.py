"""Dead letters, and trying their jobs again. They are written in qmodel/ops/burying.py."""

from __future__ import annotations

from qmodel.operations import Cancel, Put, Replay
from qmodel.ops.putting import put
from qmodel.ops.removing import cancel
from qmodel.refusals import refuse
from qmodel.state import dependencies, jobs, options
from qmodel.state.jobs import Job
from qmodel.state.store import Store


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

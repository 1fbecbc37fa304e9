"""Lines: jobs that start one after the other, or only so many at a time.

A line has a limit. So many of its jobs have a place in it; the others, once they are ready, are parked behind in the
order in which they became ready. A line of an ordered key has the limit 1, that of a request its own. What holds of
lines:

- *A job joins when it is first ready*: due, and nothing left to wait for. So nobody waits for a job behind it, and a
  delayed job does not keep others waiting.
- *A place is held until the job ends*: through retries, steps, lapses, and a move to a next queue. A job that begins to
  wait for others gives its place up, for these may stand behind it; so does one that is delayed before it has begun.
- *Nothing is counted.* Who has a place says so itself (the option `line`), and a worker that dies holds none.
- *Nobody waits in a line that has room*: a place that is given up goes to the first that is parked, in the same step.
- A slots is kept only while some job is in it.
"""

from __future__ import annotations

from typing import Final

from qmodel.contract.arguments import MOST
from qmodel.model.state import options, requests
from qmodel.model.state.records import ConcurrencyKey, Job
from qmodel.model.state.store import Store

ORDERED: Final = "ordered:"
"""What the name of an ordered key's line begins with."""

REQUEST: Final = "request:"
"""What the name of a request's line begins with."""


def of(job: Job) -> str | None:
    """The name of the line that a job is to stand in, or None."""
    key = options.get(job, "ordered")
    if key is not None:
        return ORDERED + key
    request = options.get(job, "request")
    return REQUEST + request if request is not None else None


def limit(store: Store, name: str) -> int:
    """How many jobs of a line may have a place."""
    return requests.limit(store, name[len(REQUEST) :]) if name.startswith(REQUEST) else 1


def has_slot(job: Job) -> bool:
    """Whether a job has a place in its slots."""
    return options.get(job, "line") is not None


def has_begun(job: Job) -> bool:
    """Whether a job that has a place was ever handed out since it got it."""
    return job.token > int(options.get(job, "line") or 0)


def is_parked(job: Job) -> bool:
    """Whether a ready job waits in a slots."""
    return of(job) is not None and not has_slot(job)


def free_slots(store: Store, name: str) -> int:
    """How many places of a line are free; below 0 where the limit was lowered."""
    slots = store.concurrency_keys.get(name)
    return limit(store, name) - (len(slots.active) if slots is not None else 0)


def first_parked(store: Store, name: str, most: int) -> list[Job]:
    """The jobs that have been parked for longest."""
    slots = store.concurrency_keys.get(name)
    return [store.jobs[jid] for _, _, jid in slots.parked[:most]] if slots is not None and most > 0 else []


def holders(store: Store, name: str, most: int) -> tuple[str, ...]:
    """The first jobs that have a place in a line, by id."""
    slots = store.concurrency_keys.get(name)
    return tuple(sorted(slots.active)[:most]) if slots is not None else ()


def active(store: Store, name: str) -> list[Job]:
    """The jobs that have a place, by id."""
    return [store.jobs[jid] for jid in holders(store, name, MOST)]


def _made(store: Store, name: str) -> ConcurrencyKey:
    slots = store.concurrency_keys.get(name)
    if slots is None:
        slots = store.concurrency_keys[name] = ConcurrencyKey()
    return slots


def _tidy(store: Store, name: str) -> None:
    """Forget a line in which nobody is."""
    slots = store.concurrency_keys[name]
    if not slots.active and not slots.parked:
        del store.concurrency_keys[name]


def priority(store: Store, name: str, job: Job) -> int:
    """The priority that a job has when it has got a place."""
    return requests.load(store, name[len(REQUEST) :]).priority if name.startswith(REQUEST) else job.priority


def take_slot(store: Store, name: str, job: Job) -> None:
    """Give a job a place; it keeps the sequence as of which it has it. A sub-request gets its request's priority."""
    job.priority = priority(store, name, job)
    _made(store, name).active[job.jid] = None
    options.set(job, "line", store.seq)


def free_slot(store: Store, name: str, job: Job) -> None:
    """Take a job's place away."""
    del store.concurrency_keys[name].active[job.jid]
    options.drop(job, "line")
    _tidy(store, name)


def park(store: Store, name: str, job: Job) -> None:
    """Let a job wait in a slots."""
    _made(store, name).parked.add((job.ready_at, job.seq, job.jid))


def unpark(store: Store, name: str, job: Job) -> None:
    """Let a job no longer wait in a slots."""
    store.concurrency_keys[name].parked.remove((job.ready_at, job.seq, job.jid))
    _tidy(store, name)

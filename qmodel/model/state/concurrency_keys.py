"""Concurrency keys: jobs that run one at a time, or up to a limit at a time.

A key has a limit of slots. That many of its jobs have a slot; the others, once ready, are parked in the order in which
they became ready. An ordered key has the limit 1, a request its own limit. Rules:

- *A job asks for a slot when it is first ready*: due, and with no dependencies left. So no job is parked behind it, and
  a delayed job does not hold up the others.
- *A slot is held until the job ends*: through retries, steps, lapses, and a move to a next queue. A job that begins to
  wait for other jobs releases its slot, because these may be parked behind it; so does a job that is delayed before it
  has started, and a sub-request that waits for its time, unless its request keeps places. Each asks for a slot again
  when it is ready.
- *There is no counter.* The job itself says that it has a slot (the option `line`), so a worker that dies holds none.
- *No job is parked while a slot is free*: a released slot goes to the first parked job in the same step.
- A key is kept only while a job has a slot or is parked.
"""

from __future__ import annotations

from typing import Final

from qmodel.model.state import epochs, options, requests
from qmodel.model.state.records import ConcurrencyKey, Job
from qmodel.model.state.store import Store

ORDERED: Final = "ordered:"
"""Prefix of the name of an ordered key."""

REQUEST: Final = "request:"
"""Prefix of the name of a request's key."""


def of(job: Job) -> str | None:
    """The name of the key that a job needs a slot of, or None."""
    key = options.get(job, "ordered")
    if key is not None:
        return ORDERED + key
    request = options.get(job, "request")
    return REQUEST + request if request is not None else None


def limit(store: Store, name: str) -> int:
    """How many slots a key has."""
    return requests.limit(store, name[len(REQUEST) :]) if name.startswith(REQUEST) else 1


def has_slot(job: Job) -> bool:
    """Whether a job has a slot."""
    return options.get(job, "line") is not None


def has_begun(job: Job) -> bool:
    """Whether a job has been handed out since it got its slot."""
    return epochs.claim(job.token) > int(options.get(job, "line") or 0)


def has_yielded(job: Job) -> bool:
    """Whether a job has begun, and has no slot any more."""
    return job.token > 0 and not has_slot(job)


def is_parked(job: Job) -> bool:
    """Whether a ready job is parked at its key."""
    return of(job) is not None and not has_slot(job)


def free_slots(store: Store, name: str) -> int:
    """How many slots of a key are free; negative if the limit was lowered."""
    slots = store.concurrency_keys.get(name)
    return limit(store, name) - (len(slots.active) if slots is not None else 0)


def first_parked(store: Store, name: str, most: int) -> list[str]:
    """The jobs that have been parked longest."""
    slots = store.concurrency_keys.get(name)
    return [jid for _, _, jid in slots.parked[:most]] if slots is not None and most > 0 else []


def is_wanted(store: Store, name: str) -> bool:
    """Whether a parked job would get a slot that becomes free."""
    return limit(store, name) > 0 and len(first_parked(store, name, 1)) > 0


def holders(store: Store, name: str, most: int) -> tuple[str, ...]:
    """The first jobs that have a slot, by id."""
    slots = store.concurrency_keys.get(name)
    return tuple(sorted(slots.active)[:most]) if slots is not None else ()


def _made(store: Store, name: str) -> ConcurrencyKey:
    """A key to change."""
    slots = store.concurrency_keys.get(name)
    if slots is None:
        slots = store.concurrency_keys[name] = ConcurrencyKey()
    return slots


def _tidy(store: Store, name: str) -> None:
    """Forget a key without jobs."""
    slots = store.concurrency_keys[name]
    if not slots.active and not slots.parked:
        del store.concurrency_keys[name]


def priority(store: Store, name: str, job: Job) -> int:
    """The priority that a job has once it has a slot."""
    return requests.load(store, name[len(REQUEST) :]).priority if name.startswith(REQUEST) else job.priority


def take_slot(store: Store, name: str, job: Job) -> None:
    """Give a job a slot; the option keeps the sequence. A sub-request gets its request's priority."""
    job.priority = priority(store, name, job)
    _made(store, name).active[job.jid] = None
    options.set(job, "line", store.seq)


def free_slot(store: Store, name: str, job: Job) -> None:
    """Take a job's slot away."""
    del store.concurrency_keys[name].active[job.jid]
    options.drop(job, "line")
    _tidy(store, name)


def park(store: Store, name: str, job: Job) -> None:
    """Park a job at a key."""
    _made(store, name).parked.add((job.ready_at, job.seq, job.jid))


def unpark(store: Store, name: str, job: Job) -> None:
    """Stop parking a job."""
    store.concurrency_keys[name].parked.remove((job.ready_at, job.seq, job.jid))
    _tidy(store, name)

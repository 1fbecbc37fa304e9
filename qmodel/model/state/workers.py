"""Workers: when each was last seen, the leases it holds, and what each of its requests was granted.

A grant is remembered until one of its leases ends in any way: a worker that finishes a job has seen the reply, and a
worker whose lease was lost must not be granted it again. So the memory needs no clock, and nothing of it leaks.
Where a request id is used again while older leases under it last, the end of one of these forgets the newer grant too.

A worker is entered as seen at most once a second: more would be a write for every pop, for nothing that anyone reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.contract.arguments import MOST
from qmodel.model.state import config
from qmodel.model.state.store import Store

if TYPE_CHECKING:
    from qmodel.model.state.jobs import Job

PRECISION_MS = 1000
SWEEP = 10


class Worker:
    """One worker. `seen_at` is None when it is not on the list."""

    __slots__ = ("grants", "held", "seen_at")

    def __init__(self) -> None:
        self.seen_at: int | None = None
        self.held: dict[str, int] = {}
        self.grants: dict[str, tuple[str, ...]] = {}


def seen(store: Store, now: int, name: str) -> None:
    """Enter a worker as seen now; strike some that have been silent for too long and hold nothing."""
    worker = store.workers.get(name)
    if worker is None:
        worker = store.workers[name] = Worker()
    last = worker.seen_at
    if last is not None and last <= now < last + PRECISION_MS:
        return
    worker.seen_at = now
    _sweep(store, now - config.value(store, "max-worker-age"))


def _sweep(store: Store, since: int) -> None:
    """Strike silent workers that hold no lease. A few are looked at each time, longest silent first; those that hold
    one are passed, and the next time begins behind them, until all have been looked at.
    """
    passed = store.workers_passed
    silent = sorted(
        (w.seen_at, name) for name, w in store.workers.items() if w.seen_at is not None and w.seen_at <= since
    )
    few = [name for _, name in silent[passed : passed + SWEEP]]
    for name in few:
        if store.workers[name].held:
            passed += 1
        else:
            deregister(store, name)
    store.workers_passed = passed if len(few) == SWEEP else 0


def deregister(store: Store, name: str) -> bool:
    """Take a worker off the list; say whether it was there."""
    worker = store.workers.get(name)
    if worker is None or worker.seen_at is None:
        return False
    worker.seen_at = None
    _forget_if_empty(store, name, worker)
    return True


def _forget_if_empty(store: Store, name: str, worker: Worker) -> None:
    if worker.seen_at is None and not worker.held:
        del store.workers[name]


def hold(store: Store, job: Job) -> None:
    """Enter a lease."""
    worker = store.workers.get(job.worker)
    if worker is None:
        worker = store.workers[job.worker] = Worker()
    worker.held[job.jid] = job.seq


def let_go(store: Store, job: Job) -> None:
    """Strike a lease, and what the request that granted it was granted."""
    worker = store.workers[job.worker]
    del worker.held[job.jid]
    if job.grant:
        worker.grants.pop(job.grant, None)
    if worker.seen_at is None:
        _forget_if_empty(store, job.worker, worker)


def granted(store: Store, name: str, request: str) -> tuple[str, ...]:
    """The jobs that a request was granted and that are all still held under it."""
    worker = store.workers.get(name)
    return worker.grants.get(request, ()) if worker is not None and request else ()


def remember(store: Store, name: str, request: str, jids: tuple[str, ...]) -> None:
    """Remember what a request was granted."""
    if request and jids:
        store.workers[name].grants[request] = jids


def listed(store: Store, now: int) -> list[tuple[int, str]]:
    """The workers on the list, latest seen first, without those silent for max-worker-age that hold nothing.

    Silent ones that hold something are few: they are looked for among the 1000 latest silent ones.
    """
    since = now - config.value(store, "max-worker-age")
    known = ((w.seen_at, name) for name, w in store.workers.items() if w.seen_at is not None)
    ordered = sorted(known, reverse=True)
    lively = sum(seen_at > since for seen_at, _ in ordered)
    return ordered[:lively] + [one for one in ordered[lively : lively + MOST] if store.workers[one[1]].held]


def last_seen(store: Store) -> int:
    """When any worker was seen last; 0, if none is on the list."""
    return max((worker.seen_at or 0 for worker in store.workers.values()), default=0)


def held(store: Store, name: str) -> list[str]:
    """The jobs that a worker holds, oldest claim first."""
    worker = store.workers.get(name)
    return sorted(worker.held, key=worker.held.__getitem__) if worker is not None else []

"""Workers: when each was last seen, its leases, and the grant of each of its requests.

A grant is remembered until one of its leases ends in any way: a worker that finishes a job has received the reply, and
a worker that lost a lease must not be granted it again. So this memory needs no clock, and does not leak. If a
request id is used again while older leases under it last, the end of one of these forgets the newer grant too.

A worker's last-seen time is updated at most once a second: more would cost every pop a write that no reader needs.
Calls by the rules of qless update it each time, because qless lists workers in that order.
"""

from __future__ import annotations

from qmodel.contract.arguments import MOST
from qmodel.model.state import budget, config
from qmodel.model.state.records import Job, Worker
from qmodel.model.state.store import Store

PRECISION_MS = 1000
SWEEP = 10


def seen(store: Store, now: int, name: str, exact: bool = False) -> None:
    """Record that a worker was seen now; delete some workers that have been silent too long and hold nothing.

    `exact`: record it even if the worker was seen within the last second.
    """
    worker = store.workers.get(name)
    if worker is None:
        worker = store.workers[name] = Worker()
    last = worker.seen_at
    recent = last is not None and last <= now < last + PRECISION_MS
    if recent and not exact:
        return
    worker.seen_at = now
    if not recent:
        _sweep(store, now - config.value(store, "max-worker-age"))


def _sweep(store: Store, since: int) -> None:
    """Delete silent workers without leases. A few are examined each time, longest silent first. Those with a lease are
    passed, and the next call continues after them, until all have been examined.
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
    """Take a worker off the list; say whether it was listed."""
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


def release(store: Store, job: Job) -> None:
    """Remove a lease, and forget the grant that it belongs to."""
    worker = store.workers[job.worker]
    del worker.held[job.jid]
    if job.grant:
        worker.grants.pop(job.grant, None)
    if worker.seen_at is None:
        _forget_if_empty(store, job.worker, worker)


def granted(store: Store, name: str, request: str) -> tuple[str, ...]:
    """The jobs that a request was granted, if all are still held under it."""
    worker = store.workers.get(name)
    return worker.grants.get(request, ()) if worker is not None and request else ()


def remember(store: Store, name: str, request: str, jids: tuple[str, ...]) -> None:
    """Remember which jobs a request was granted."""
    if request and jids:
        store.workers[name].grants[request] = jids


def listed(store: Store, now: int) -> list[tuple[int, str]]:
    """The listed workers, latest seen first, without those silent for max-worker-age that hold nothing.

    Silent workers with leases are few: only the 1000 latest silent ones are examined for them.
    """
    since = now - config.value(store, "max-worker-age")
    known = ((w.seen_at, name) for name, w in store.workers.items() if w.seen_at is not None)
    ordered = sorted(known, reverse=True)
    lively = sum(seen_at > since for seen_at, _ in ordered)
    return ordered[:lively] + [one for one in ordered[lively : lively + MOST] if store.workers[one[1]].held]


def last_seen(store: Store) -> int:
    """When any worker was last seen; 0 if none is listed."""
    return max((worker.seen_at or 0 for worker in store.workers.values()), default=0)


def entries(store: Store, name: str) -> int:
    """How many entries a worker has: its leases, the grants that are remembered, and when it was seen. Each grant has a
    lease of its own.
    """
    worker = store.workers.get(name)
    return len(worker.held) + len(worker.grants) + (worker.seen_at is not None) if worker is not None else 0


def check_bounded(store: Store, operation: str, name: str) -> int:
    """Refuse to look at more leases of a worker than one operation may; give the units."""
    count = entries(store, name)
    units = budget.of_leases(count)
    budget.check(operation, count, units)
    return units


def held(store: Store, name: str) -> list[str]:
    """The jobs that a worker holds, oldest claim first."""
    worker = store.workers.get(name)
    return sorted(worker.held, key=worker.held.__getitem__) if worker is not None else []


def unordered(store: Store, name: str) -> list[str]:
    """The jobs that a worker holds, for a caller that only counts them."""
    return held(store, name)

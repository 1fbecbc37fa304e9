"""Queues: five sorted lists of jobs each, a pause, and the count of idle workers.

A queue is on the list from its first put until it is forgotten. Workers that found nothing count as idle; a job that
becomes ready, or is taken from its worker, turns one idle worker into one wake-up, so that a thousand waiters do not
stampede after one job. Where the waiting happens is a backend's matter; the counts are state like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmodel.model.sorted_list import Ordered
from qmodel.model.state import options, ttl
from qmodel.model.state.records import Job, Position, Queue
from qmodel.model.state.store import Store

FIRST = float("-inf")
"""Where a stalled job stands among the locks: before every lease that ran out."""

NO_TIME = 99_999_999_999_998
"""When something is due that is not: no moment reaches it."""

IDLE_MOST = 1000


def of(store: Store, name: str) -> Queue:
    """A queue to look at; an empty one if nothing is known of it."""
    return store.queues.get(name) or Queue()


def _made(store: Store, name: str) -> Queue:
    """A queue to change."""
    queue = store.queues.get(name)
    if queue is None:
        queue = store.queues[name] = Queue()
    return queue


def register(store: Store, now: int, name: str) -> None:
    """Put a queue on the list, if it is not there."""
    queue = store.queues.get(name) or _made(store, name)
    if queue.first_seen is None:
        queue.first_seen = now


def forget(store: Store, name: str) -> bool:
    """Take a queue off the list, with its pauses and its idle workers; say whether it was there, or had any."""
    queue = store.queues.pop(name, None)
    return queue is not None and (queue.first_seen is not None or bool(queue.pauses))


def listed(store: Store) -> list[str]:
    """The names of the queues on the list, first seen first; the name decides between equal times."""
    known = ((q.first_seen, name) for name, q in store.queues.items() if q.first_seen is not None)
    return [name for _, name in sorted(known)]


def has_pauses(store: Store, name: str) -> bool:
    """Whether a queue has pauses, be their time up or not (state/pauses.py)."""
    queue = store.queues.get(name)
    return queue is not None and bool(queue.pauses)


def set_pauses(store: Store, name: str, pauses: dict[str, int]) -> None:
    """Let a queue have just these pauses."""
    _made(store, name).pauses = pauses


def resume(store: Store, name: str) -> None:
    """Wake idle workers for all that a queue may have, for it is paused no longer."""
    queue = _made(store, name)
    wake(queue, length(queue) + len(queue.recur))


def length(queue: Queue) -> int:
    """How many jobs a queue has, in any state."""
    waiting = len(queue.ready) + len(queue.scheduled) + len(queue.depends) + len(queue.throttled)
    return waiting + len(queue.locks)


# ---- places


def rank(job: Job) -> tuple[int, int, int, str]:
    """Where a ready job stands in the order. The moments of lifo jobs are below all others, and fall."""
    if job.options and options.get(job, "lifo"):
        return job.priority, -1 - job.ready_at, -job.seq, job.jid
    return job.priority, job.ready_at, job.seq, job.jid


def push(store: Store, job: Job) -> None:
    """Make a job ready, and wake a worker for it."""
    queue = store.queues.get(job.queue) or _made(store, job.queue)
    queue.ready.add(rank(job) if job.options else (job.priority, job.ready_at, job.seq, job.jid))
    if queue.idle:
        wake(queue, 1)


def pull(store: Store, job: Job) -> None:
    """Take a job out of the order."""
    store.queues[job.queue].ready.remove(rank(job))


def schedule(store: Store, job: Job) -> None:
    """Let a job wait for its time. If it is the first, a worker is woken that sleeps until a later one, or for ever."""
    queue = _made(store, job.queue)
    place = (job.ready_at, job.seq, job.jid)
    queue.scheduled.add(place)
    if queue.idle and queue.scheduled[0] == place:
        wake(queue, 1)


def unschedule(store: Store, job: Job) -> None:
    """Take a job off the schedule."""
    store.queues[job.queue].scheduled.remove((job.ready_at, job.seq, job.jid))


def park(store: Store, job: Job) -> None:
    """Let a job wait for others."""
    _made(store, job.queue).depends.add((job.put_at, job.seq, job.jid))


def unpark(store: Store, job: Job) -> None:
    """Let a job no longer wait for others."""
    store.queues[job.queue].depends.remove((job.put_at, job.seq, job.jid))


def throttle(store: Store, job: Job) -> None:
    """Let a ready job wait for a throttle."""
    _made(store, job.queue).throttled.add((job.ready_at, job.seq, job.jid))


def unthrottle(store: Store, job: Job) -> None:
    """Let a job no longer wait for a throttle."""
    store.queues[job.queue].throttled.remove((job.ready_at, job.seq, job.jid))


def lock(store: Store, job: Job) -> None:
    """Enter a lease, or a job whose lease was taken, and wake a worker for that."""
    queue = store.queues.get(job.queue) or _made(store, job.queue)
    if job.state == "stalled":
        queue.locks.add((FIRST, job.seq, job.jid))
        wake(queue, 1)
    else:
        queue.locks.add((job.expires_at, job.seq, job.jid))


def unlock(store: Store, job: Job) -> None:
    """Strike a lease."""
    moment = FIRST if job.state == "stalled" else job.expires_at
    store.queues[job.queue].locks.remove((moment, job.seq, job.jid))


def renew(store: Store, job: Job, expires_at: int) -> None:
    """Let a lease run until another moment."""
    unlock(store, job)
    job.expires_at = expires_at
    lock(store, job)


# ---- taking


def take(store: Store, queue: Queue, count: int) -> list[Job]:
    """Take the next ready jobs out of the order; they are in no place then."""
    taken = []
    for place in queue.ready.take(count):
        job = store.jobs[place[3]]
        if job.options:
            ttl.leave(store, job)
        job.state = ""
        taken.append(job)
    return taken


def due(store: Store, queue: Queue, now: int, most: int) -> Sequence[Job]:
    """Scheduled jobs whose time has come, by that time."""
    found = queue.scheduled.until(now, most)
    return [store.jobs[jid] for _, _, jid in found] if found else ()


def is_due(queue: Queue, now: int) -> bool:
    """Whether a pop has to look at more than the order: at what may have become due, or ended, by itself."""
    if queue.expires.size or queue.recur.size:
        return True
    if queue.scheduled.size and queue.scheduled.begins_by(now):
        return True
    return queue.locks.begins_by(now)


def lapsed(store: Store, queue: Queue, until: int, most: int) -> Sequence[Job]:
    """Stalled jobs, then those whose lease ran out by `until`, by that time."""
    found = queue.locks.until(until, most)
    return [store.jobs[jid] for _, _, jid in found] if found else ()


def next_ready(store: Store, queue: Queue, most: int) -> list[Job]:
    """The first jobs in the order."""
    return [store.jobs[place[3]] for place in queue.ready[:most]]


# ---- idle workers


def wake(queue: Queue, most: int) -> None:
    """Turn idle workers into wake-ups: one for each job that they may now get."""
    woken = min(queue.idle, most)
    queue.idle -= woken
    queue.wakes += woken


def await_work(store: Store, name: str) -> None:
    """Count one more idle worker. Wake-ups not yet used are stale, for there is no job, and count as idle again."""
    queue = _made(store, name)
    queue.idle = min(queue.idle + queue.wakes + 1, IDLE_MOST)
    queue.wakes = 0


def wake_one(store: Store, name: str) -> None:
    """Wake an idle worker."""
    wake(_made(store, name), 1)


def wake_if_ready(store: Store, name: str) -> None:
    """Wake an idle worker, if there is a ready job."""
    if of(store, name).ready:
        wake_one(store, name)


def wake_all(store: Store, name: str) -> None:
    """Turn all idle workers into wake-ups: the moment until which they sleep may be wrong."""
    wake(_made(store, name), IDLE_MOST)


# ---- looking


def page(places: Ordered[Position], low: float, high: float, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many places lie in low < moment <= high, and the ids of a page of them."""
    first, last = places.count_until(low) if low > FIRST else 0, places.count_until(high)
    return last - first, tuple(place[-1] for place in places[first + offset : min(first + offset + count, last)])


def count(places: Ordered[Position], moment: float) -> int:
    """How many places have at most this moment."""
    return places.count_until(moment)


def order(queue: Queue, offset: int, count: int) -> list[str]:
    """The ids of a page of the ready jobs."""
    return [place[-1] for place in queue.ready[offset : offset + count]]


def ahead(store: Store, job: Job) -> int:
    """How many jobs are before a job in its queue's order, if it stands there."""
    return list(of(store, job.queue).ready).index(rank(job)) if job.state == "waiting" else 0


def next_at(queue: Queue, now: int, grace: int) -> int:
    """The next moment at which a job becomes ready by itself, or 0."""
    soon = []
    first = queue.scheduled.count_until(now)
    if first < len(queue.scheduled):
        soon.append(queue.scheduled[first][0])
    first = queue.locks.count_until(now - grace)
    if first < len(queue.locks):
        soon.append(queue.locks[first][0] + grace)
    first = queue.recur.count_until(now)
    if first < len(queue.recur) and queue.recur[first][0] < NO_TIME:
        soon.append(queue.recur[first][0])
    return int(min(soon, default=0))


def not_begun(store: Store, name: str, most: int) -> list[str]:
    """The ids of the first jobs that are ready, scheduled, wait for others, or for a throttle."""
    queue = of(store, name)
    found = [place[-1] for place in queue.ready[:most]]
    for places in (queue.scheduled, queue.depends, queue.throttled):
        found += [place[-1] for place in places[: most - len(found)]]
    return found


def promote(store: Store, job: Job) -> None:
    """Move a job whose time has come from the schedule into the order, where its time and sequence place it."""
    unschedule(store, job)
    job.state = "waiting"
    push(store, job)

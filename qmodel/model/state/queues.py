"""Queues: five sorted lists of jobs each, pauses, and the count of idle workers.

A queue is on the list from its first put until it is forgotten. A worker that found nothing counts as idle. A job that
becomes ready, or loses its lease, turns one idle worker into one wake-up, so that a thousand waiting workers do not
stampede after one job. How a worker waits is the backend's matter; the counts are state like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmodel.model.sorted_list import Ordered
from qmodel.model.state import aging, config, options, ttl, turns
from qmodel.model.state.records import Job, Place, Position, Queue
from qmodel.model.state.store import Store

FIRST = float("-inf")
"""The position of a stalled job among the locks: before every expired lease."""

NO_TIME = 99_999_999_999_998
"""The due time of something that is not due: later than any moment."""

IDLE_MOST = 1000


def of(store: Store, name: str) -> Queue:
    """A queue to read; an empty one if it is unknown."""
    return store.queues.get(name) or Queue()


def _made(store: Store, name: str) -> Queue:
    """A queue to change."""
    queue = store.queues.get(name)
    if queue is None:
        queue = store.queues[name] = Queue()
    return queue


def register(store: Store, now: int, name: str) -> None:
    """Put a queue on the list, unless it is listed."""
    queue = store.queues.get(name) or _made(store, name)
    if queue.first_seen is None:
        queue.first_seen = now


def forget(store: Store, name: str) -> bool:
    """Remove a queue, with its pauses and idle workers; say whether it was listed or had pauses."""
    queue = store.queues.pop(name, None)
    return queue is not None and (queue.first_seen is not None or bool(queue.pauses))


def listed(store: Store) -> list[str]:
    """The names of the listed queues, first used first; the name breaks ties."""
    known = ((q.first_seen, name) for name, q in store.queues.items() if q.first_seen is not None)
    return [name for _, name in sorted(known)]


def has_pauses(store: Store, name: str) -> bool:
    """Whether a queue has pauses, expired ones included (state/pauses.py)."""
    queue = store.queues.get(name)
    return queue is not None and bool(queue.pauses)


def set_pauses(store: Store, name: str, pauses: dict[str, int]) -> None:
    """Replace the pauses of a queue."""
    _made(store, name).pauses = pauses


def resume(store: Store, name: str) -> None:
    """Wake idle workers for everything that a queue may have, because its last pause has ended."""
    queue = _made(store, name)
    wake(queue, length(queue) + len(queue.recur))


def length(queue: Queue) -> int:
    """How many jobs a queue has, in any state."""
    waiting = len(queue.ready) + len(queue.scheduled) + len(queue.depends) + len(queue.throttled)
    return waiting + len(queue.locks)


# ---- lists of jobs


def rank(job: Job) -> Place:
    """The place of a ready job by its priority. In a fair queue a turn is in place of the time. The times of lifo jobs
    are negative and fall, so that the newest comes first.
    """
    turn = options.get(job, "turn") if job.options else None
    if turn is not None:
        return job.priority, int(turn), job.seq, job.jid
    if job.options and options.get(job, "lifo"):
        return job.priority, -1 - job.ready_at, -job.seq, job.jid
    return job.priority, job.ready_at, job.seq, job.jid


def push(store: Store, job: Job) -> None:
    """Make a job ready, and wake a worker for it."""
    queue = store.queues.get(job.queue) or _made(store, job.queue)
    if job.options or store.fair:
        _take_turn(store, queue, job)
    if store.aging:
        _enter(store, queue, job)
    else:
        queue.ready.add(rank(job) if job.options else (job.priority, job.ready_at, job.seq, job.jid))
    if queue.idle:
        wake(queue, 1)


def place(store: Store, job: Job) -> Place:
    """The place that a job gets in the order of its queue when it becomes ready."""
    priority, at, seq, jid = rank(job)
    rate = config.aging(store, job.queue) if store.aging else 0
    return (aging.first_number(rate, priority, at) if rate else priority, at, seq, jid)


def standing(job: Job) -> Place:
    """The place where a ready job stands."""
    priority, at, seq, jid = rank(job)
    return (job.aged or priority, at, seq, jid)


def _enter(store: Store, queue: Queue, job: Job) -> None:
    """Put a job into the order of a queue; its jobs may age."""
    entry = place(store, job)
    job.aged = entry[0] if aging.is_by_age(entry[0]) else 0
    queue.ready.add(entry)


def first(queue: Queue, priority: int) -> int | None:
    """The time or turn that orders the first ready job of a priority; None if none is, or it is put first."""
    at = queue.ready.count_until(priority - 1)
    found = queue.ready[at : at + 1]
    return found[0][1] if found and found[0][0] == priority and found[0][1] > 0 else None


def _take_turn(store: Store, queue: Queue, job: Job) -> None:
    """Give a job a turn if its queue is fair; one that was made the first of its priority needs none."""
    if config.is_fair(store, job.queue) and job.ready_at > 0:
        turns.take(queue, job, first(queue, job.priority))
    elif job.options:
        options.drop(job, "turn")


def pull(store: Store, job: Job) -> None:
    """Take a job out of the order."""
    queue = store.queues[job.queue]
    queue.ready.remove(standing(job))
    job.aged = 0
    if job.options:
        turns.give_back(queue, job)


def schedule(store: Store, job: Job) -> None:
    """Put a job on the schedule. If it is the first, wake a worker that sleeps until a later time, or for ever."""
    queue = _made(store, job.queue)
    place = (job.ready_at, job.seq, job.jid)
    queue.scheduled.add(place)
    if queue.idle and queue.scheduled[0] == place:
        wake(queue, 1)


def unschedule(store: Store, job: Job) -> None:
    """Take a job off the schedule."""
    store.queues[job.queue].scheduled.remove((job.ready_at, job.seq, job.jid))


def park(store: Store, job: Job) -> None:
    """List a job that waits for other jobs."""
    _made(store, job.queue).depends.add((job.put_at, job.seq, job.jid))


def unpark(store: Store, job: Job) -> None:
    """Remove a job from the list of those that wait for other jobs."""
    store.queues[job.queue].depends.remove((job.put_at, job.seq, job.jid))


def throttle(store: Store, job: Job) -> None:
    """List a ready job that is parked."""
    _made(store, job.queue).throttled.add((job.ready_at, job.seq, job.jid))


def unthrottle(store: Store, job: Job) -> None:
    """Remove a job from the list of parked ones."""
    store.queues[job.queue].throttled.remove((job.ready_at, job.seq, job.jid))


def lock(store: Store, job: Job) -> None:
    """Enter a lease, or a stalled job, and wake a worker for that one."""
    queue = store.queues.get(job.queue) or _made(store, job.queue)
    if job.state == "stalled":
        queue.locks.add((FIRST, job.seq, job.jid))
        wake(queue, 1)
    else:
        queue.locks.add((job.expires_at, job.seq, job.jid))


def unlock(store: Store, job: Job) -> None:
    """Remove a lease."""
    moment = FIRST if job.state == "stalled" else job.expires_at
    store.queues[job.queue].locks.remove((moment, job.seq, job.jid))


def renew(store: Store, job: Job, expires_at: int) -> None:
    """Move the end of a lease."""
    unlock(store, job)
    job.expires_at = expires_at
    lock(store, job)


# ---- taking


def take(store: Store, queue: Queue, count: int) -> list[Job]:
    """Take the next ready jobs out of the order; `keep_taken` comes next."""
    taken = []
    for place in queue.ready.take(count):
        taken.append(store.jobs[place[3]])
    return taken


def keep_taken(store: Store, queue: Queue, taken: list[Job], fit: int) -> list[Job]:
    """Keep as many jobs that were taken out of the order, which are in no list then, and put the others back to where
    they were.
    """
    for job in taken[fit:]:
        queue.ready.add(standing(job))
    kept = taken[:fit]
    for job in kept:
        if job.options:
            ttl.leave(store, job)
            turns.leave(queue, job)
        job.state = ""
    return kept


def due(store: Store, queue: Queue, now: int, most: int) -> Sequence[Job]:
    """Scheduled jobs that have become due, earliest first."""
    found = queue.scheduled.until(now, most)
    return [store.jobs[jid] for _, _, jid in found] if found else ()


def is_due(queue: Queue, now: int) -> bool:
    """Whether a pop must examine more than the order: something may have become due or expired by itself."""
    if queue.expires.size or queue.recur.size:
        return True
    if queue.scheduled.size and queue.scheduled.begins_by(now):
        return True
    return queue.locks.begins_by(now)


def lapsed(store: Store, queue: Queue, until: int, most: int) -> Sequence[Job]:
    """Stalled jobs, then those with a lease that expired by `until`, earliest first."""
    found = queue.locks.until(until, most)
    return [store.jobs[jid] for _, _, jid in found] if found else ()


def next_ready(store: Store, queue: Queue, most: int) -> list[Job]:
    """The first jobs in the order."""
    return [store.jobs[place[3]] for place in queue.ready[:most]]


def unaged(store: Store, name: str, queue: Queue, most: int) -> list[Job]:
    """The first ready jobs that still stand by their priority, if the jobs of their queue age."""
    if not config.aging(store, name):
        return []
    first = queue.ready.count_until(aging.BOUND)
    return [store.jobs[place[3]] for place in queue.ready[first : first + most]]


def age(store: Store, job: Job) -> None:
    """Move a ready job to its place by age."""
    queue = store.queues[job.queue]
    queue.ready.remove(standing(job))
    _enter(store, queue, job)


# ---- idle workers


def wake(queue: Queue, most: int) -> None:
    """Turn idle workers into wake-ups: one for each job that they may get now."""
    woken = min(queue.idle, most)
    queue.idle -= woken
    queue.wakes += woken


def await_work(store: Store, name: str) -> None:
    """Count one more idle worker. Unused wake-ups are stale (there is no job): they become idle workers again."""
    queue = _made(store, name)
    queue.idle = min(queue.idle + queue.wakes + 1, IDLE_MOST)
    queue.wakes = 0


def wake_one(store: Store, name: str) -> None:
    """Wake one idle worker."""
    wake(_made(store, name), 1)


def wake_if_ready(store: Store, name: str) -> None:
    """Wake one idle worker if there is a ready job."""
    if of(store, name).ready:
        wake_one(store, name)


def wake_all(store: Store, name: str) -> None:
    """Turn all idle workers into wake-ups: the time until which they sleep may be wrong now."""
    wake(_made(store, name), IDLE_MOST)


# ---- looking


def page(places: Ordered[Position], low: float, high: float, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many entries lie in low < time <= high, and the ids of a page of them."""
    first, last = places.count_until(low) if low > FIRST else 0, places.count_until(high)
    return last - first, tuple(place[-1] for place in places[first + offset : min(first + offset + count, last)])


def in_time(places: Ordered[Position], low: float, high: float, count: int) -> list[tuple[float, str]]:
    """The first entries in low < time <= high, each with its time; those of one time by id."""
    first = places.count_until(low)
    last = min(first + count, places.count_until(high))
    return sorted((place[0], place[-1]) for place in places[first:last])


def count(places: Ordered[Position], moment: float) -> int:
    """How many entries have at most this time."""
    return places.count_until(moment)


def order(queue: Queue, offset: int, count: int) -> list[str]:
    """The ids of a page of the ready jobs."""
    return [place[-1] for place in queue.ready[offset : offset + count]]


def ahead(store: Store, job: Job) -> int:
    """How many jobs come before a job in its queue's order, if it is ready."""
    return list(of(store, job.queue).ready).index(standing(job)) if job.state == "waiting" else 0


def next_at(queue: Queue, now: int, grace: int) -> int:
    """The next time at which a job becomes ready, or a request is due, by itself; or 0."""
    soon: list[float] = [moment for moment in queue.ends.values() if moment > now]
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
    """The ids of jobs that wait for others, last ones first; then of the first that are ready, scheduled, or parked.

    Jobs mostly come after those that they wait for, so a caller that ends them need not leave these to a later call.
    """
    queue = of(store, name)
    found = [place[-1] for place in queue.depends[max(len(queue.depends) - most, 0) :]][::-1]
    for places in (queue.ready, queue.scheduled, queue.throttled):
        found += [place[-1] for place in places[: most - len(found)]]
    return found


def promote(store: Store, job: Job) -> None:
    """Move a job that has become due from the schedule into the order, at the position that its due time gives."""
    unschedule(store, job)
    job.state = "waiting"
    push(store, job)

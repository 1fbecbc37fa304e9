"""Parked jobs: for each queue, the jobs that wait at each throttle.

Each throttle of a queue has a time at which the queue's next pop must check it: the time at which the throttle opens by
itself, or 0 once something has happened that may have opened it. So a pop does not check a throttle when nothing has
changed.

An admitted job is in its queue's order like any other. It is remembered here until it is claimed, or leaves the order,
for two reasons: what it will take is not given to others, and later jobs do not overtake it.

A job has one turn at all throttles that it names: its priority, then the sequence at which it was first parked. Others
come before it only by an earlier turn. Otherwise two jobs with two throttles could each wait for the room that the
other's throttle has reserved, for ever.

The option `gate` of a job names the throttle at which it is parked, or that has admitted it; the options and the keys
in Redis keep that name.
"""

from __future__ import annotations

from qmodel.contract.arguments import MOST
from qmodel.model.state import budget, epochs, families, options, queues, subjects, throttles
from qmodel.model.state.records import NEVER, Job, ParkedJobs, Queue
from qmodel.model.state.store import Store
from qmodel.model.state.throttles import Before, cost, counted, forget_if_empty, made, of, own, queue_of

QUEUES = 100
"""How many queues of a throttle are read for all that are parked at it."""


def hold(store: Store, job: Job) -> None:
    """Count a leased job in each throttle that it names, but for those that were released."""
    for name in counted(job):
        made(store, name).held.add((epochs.claim(job.token), job.jid))


def release(store: Store, job: Job) -> None:
    """Stop counting a job in its throttles."""
    for name in counted(job):
        _release(store, job, name)
    mine = own(store, job.queue)
    if mine and store.throttles[mine].concurrency:
        free(store, mine)


def _release(store: Store, job: Job, name: str) -> None:
    store.throttles[name].held.remove((epochs.claim(job.token), job.jid))
    if of(store, name).concurrency:
        free(store, name)
    forget_if_empty(store, name)


def release_one(store: Store, job: Job, name: str) -> None:
    """Stop counting a leased job in one throttle before its lease ends."""
    _release(store, job, name)
    throttles.release(job, name)


def free(store: Store, name: str) -> None:
    """Let the queues with jobs parked at a throttle check it again, and wake a worker of each."""
    mine = queue_of(name)
    if mine:
        queues.wake_if_ready(store, mine)
        return
    for queue in sorted(of(store, name).queues)[:MOST]:
        expect(store, queue, name, 0)
        queues.wake_one(store, queue)


def free_family(store: Store, name: str) -> None:
    """Let queues check the throttles of a family again, and wake a worker of each, if it is a family. That reaches the
    first 1000 throttles with jobs parked in the first queues; others are checked when they open by themselves, or when
    one of their jobs ends.
    """
    left = MOST if families.is_family(name) else 0
    for queue in queues.listed(store)[:left]:
        parked_at = sorted((entry.moment, other) for other, entry in queues.of(store, queue).parked.items())[:left]
        matching = [other for _, other in parked_at if subjects.like(name, other)]
        for other in matching:
            expect(store, queue, other, 0)
        if matching:
            queues.wake_one(store, queue)
        left -= len(parked_at)
        if left == 0:
            break


def freeing(store: Store, job: Job) -> int:
    """The units for letting queues check the throttles of a job again when its lease ends."""
    if not job.options or job.state != "running":
        return 0
    bounded = [of(store, name) for name in counted(job) if of(store, name).concurrency]
    return sum(budget.QUEUE * min(len(throttle.queues), MOST) for throttle in bounded)


def due(queue: Queue, now: int, most: int) -> list[str]:
    """The throttles that a pop must check, by the time since when."""
    if not queue.parked:
        return []
    found = sorted((entry.moment, name) for name, entry in queue.parked.items() if entry.moment <= now)
    return [name for _, name in found[:most]]


def open_at(queue: Queue) -> int:
    """The first time at which a pop must check any throttle."""
    return min((entry.moment for entry in queue.parked.values()), default=NEVER)


def _entry(store: Store, queue: str, name: str) -> ParkedJobs:
    """The jobs of a queue at a throttle, to change."""
    entries = store.queues[queue].parked
    if name not in entries:
        entries[name] = ParkedJobs()
    return entries[name]


def expect(store: Store, queue: str, name: str, moment: int) -> None:
    """Let pops check a throttle from a given time on, if any job is parked at it."""
    entry = store.queues[queue].parked.get(name)
    if entry is not None:
        entry.moment = moment if entry.parked else NEVER


def lower(store: Store, queue: str, name: str, moment: int) -> None:
    """Let pops check a throttle from a given time on, or earlier if that was set before."""
    expect(store, queue, name, min(moment, store.queues[queue].parked[name].moment))


def _changed(store: Store, queue: str, name: str) -> None:
    """Follow up when a job has left: another job, which may need less, is the first now; or no job is left."""
    entry = store.queues[queue].parked[name]
    expect(store, queue, name, 0)
    if not entry.parked:
        of(store, name).queues.discard(queue)
        forget_if_empty(store, name)
        if not entry.admitted:
            del store.queues[queue].parked[name]


def turn(job: Job) -> int:
    """The turn of a job within its priority; a job that was not parked comes last."""
    return int(options.get(job, "parked") or NEVER)


def _parked_at(job: Job) -> tuple[int, int, str]:
    """The position of a job among those parked."""
    return job.priority, turn(job), job.jid


def _admitted_at(job: Job) -> tuple[int, int, int, str]:
    """The position of a job among those admitted, with its cost."""
    return job.priority, turn(job), cost(job), job.jid


def park(store: Store, job: Job) -> None:
    """Park a job at the throttle that its option `gate` names, if it has one."""
    name = options.get(job, "gate")
    if name is not None:
        _entry(store, job.queue, name).parked.add(_parked_at(job))
        made(store, name).queues.add(job.queue)


def unpark(store: Store, job: Job) -> None:
    """Stop parking it."""
    name = options.get(job, "gate")
    if name is not None:
        store.queues[job.queue].parked[name].parked.remove(_parked_at(job))
        _changed(store, job.queue, name)


def recheck(store: Store, job: Job) -> None:
    """Let the next pop check the throttle at which a job is parked, because the job's position has changed."""
    name = options.get(job, "gate")
    if name is not None:
        expect(store, job.queue, name, 0)


def reserve(store: Store, job: Job) -> None:
    """Remember that a throttle has admitted a ready job, if one has."""
    name = options.get(job, "gate")
    if name is not None:
        _entry(store, job.queue, name).admitted.add(_admitted_at(job))


def unreserve(store: Store, job: Job) -> None:
    """Forget that a throttle has admitted a job."""
    name = options.get(job, "gate")
    if name is not None:
        store.queues[job.queue].parked[name].admitted.remove(_admitted_at(job))
        _changed(store, job.queue, name)


def forget_throttle(job: Job) -> None:
    """Clear the options that name a job's throttle and its turn."""
    options.drop(job, "gate")
    options.drop(job, "parked")


def parked(store: Store, queue: str, name: str, most: int) -> list[Job]:
    """The first jobs of a queue that are parked at a throttle."""
    entry = queues.of(store, queue).parked.get(name)
    return [store.jobs[jid] for _, _, jid in entry.parked[:most]] if entry is not None else []


def waiting(store: Store, name: str, most: int) -> list[tuple[int, str]]:
    """The jobs that are parked at a throttle, the first ones in each of its first queues: since when, and their ids."""
    found = []
    for queue in sorted(of(store, name).queues)[:QUEUES]:
        found += [(since, jid) for _, since, jid in store.queues[queue].parked[name].parked[:most]]
    return found


def admitted(store: Store, queue: str, name: str, priority: float, before: int) -> Before:
    """How many admitted jobs of a queue still wait at a throttle, and their cost, if their priority is better or their
    turn earlier.
    """
    entry = queues.of(store, queue).parked.get(name)
    found = entry.admitted.until(priority, MOST) if entry is not None else []
    costs = [spent for other, since, spent, _ in found if since < before or other < priority]
    return len(costs), sum(costs)


def is_behind(store: Store, job: Job, name: str) -> bool:
    """Whether another job of its queue is parked at a throttle, with a better priority or an earlier turn."""
    entry = queues.of(store, job.queue).parked.get(name)
    return entry is not None and bool(entry.parked) and entry.parked[0][:2] < (job.priority, turn(job))


def ahead(store: Store, job: Job) -> int:
    """How many jobs of its queue come before a job that is parked at a throttle."""
    name = options.get(job, "gate")
    if name is None or job.state != "throttled":
        return 0
    return list(store.queues[job.queue].parked[name].parked).index(_parked_at(job))


def count_parked(store: Store, name: str) -> int:
    """How many jobs are parked at a throttle, in the first 1000 of its queues."""
    return sum(len(store.queues[queue].parked[name].parked) for queue in sorted(of(store, name).queues)[:MOST])

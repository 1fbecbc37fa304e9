"""Concurrency keys: which jobs get a slot, and when. Their rules are in qmodel/model/state/concurrency_keys.py."""

from __future__ import annotations

from collections import Counter

from qmodel.model.state import budget, concurrency_keys, jobs, options, parked, requests
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def admit(store: Store, job: Job) -> str:
    """The state of a job that is ready: waiting if it needs no slot, has one or gets one; otherwise throttled."""
    name = concurrency_keys.of(job)
    if name is None or concurrency_keys.has_slot(job):
        return "waiting"
    if concurrency_keys.free_slots(store, name) <= 0:
        return "throttled"
    concurrency_keys.take_slot(store, name, job)
    return "waiting"


def place(store: Store, now: int, job: Job, state: str) -> None:
    """Put a lifted job into the lists of the state in which it begins; tell if it is parked."""
    if state == "throttled":
        emit(store, now, "throttled", job.jid, job.queue, str(concurrency_keys.of(job)))
    jobs.place(store, job, state)


def release_slot(store: Store, now: int, job: Job) -> None:
    """Release a job's slot, if it has one, and give it to the next parked job."""
    name = concurrency_keys.of(job)
    if name is not None and concurrency_keys.has_slot(job):
        wanted = concurrency_keys.is_wanted(store, name)
        concurrency_keys.free_slot(store, name, job)
        if wanted:
            fill_slots(store, now, name, concurrency_keys.free_slots(store, name))


def release_unused_slot(store: Store, now: int, job: Job) -> None:
    """Release the slot of a job that has not started: it is not to start now."""
    if not concurrency_keys.has_begun(job):
        yield_slot(store, now, job)


def yield_slot(store: Store, now: int, job: Job) -> None:
    """Release the slot of a job that is to wait for others or for its time, if it has one."""
    id = options.get(job, "request")
    if id is not None and concurrency_keys.has_slot(job) and job.token > 0:
        requests.note_yield(store, id, job)
    release_slot(store, now, job)


def yields(store: Store, job: Job) -> bool:
    """Whether a job gives up a slot while it waits for its time: a sub-request, unless its request keeps places."""
    id = options.get(job, "request")
    return id is not None and concurrency_keys.has_slot(job) and not requests.load(store, id).keep_places


def wait_for_time(store: Store, now: int, job: Job) -> None:
    """Yield the slot of a job that is to wait for its time, unless it keeps it."""
    if yields(store, job):
        yield_slot(store, now, job)


def fill_slots(store: Store, now: int, name: str, most: int) -> None:
    """Give slots to the first parked jobs, up to `most`; each joins the end of its priority."""
    for jid in concurrency_keys.first_parked(store, name, most):
        job = jobs.load(store, jid)
        jobs.lift(store, job)
        job.ready_at = now
        emit(store, now, "unthrottled", job.jid, job.queue, name)
        concurrency_keys.take_slot(store, name, job)
        jobs.place(store, job, "waiting")


def parked_first(found: list[Job]) -> list[Job]:
    """The same jobs, those parked at a key before all others: the order in which many are ended, so that no job gets
    a slot in the step that ends it.
    """
    return sorted(found, key=lambda job: not (job.state == "throttled" and concurrency_keys.is_parked(job)))


def ending(store: Store, job: Job) -> int:
    """The units for ending a job: for deleting it, for giving its slot to the next parked job, and for the jobs that
    are parked at its throttles.
    """
    name = concurrency_keys.of(job)
    units = budget.weight(job) + parked.freeing(store, job)
    if name is not None and concurrency_keys.has_slot(job):
        for jid in concurrency_keys.first_parked(store, name, 1):
            units += budget.SLOT + budget.moving(jobs.load(store, jid))
    return units


def passing(job: Job) -> int:
    """The units for moving a job that is parked at a key, and may get a slot before its turn in the same step."""
    return budget.moving(job) if job.state == "throttled" and concurrency_keys.is_parked(job) else 0


def preview(store: Store, now: int, queue: str, ended: list[Job], due: list[Job]) -> list[Job]:
    """The jobs that would join the order of a queue if some jobs gave up their slots, and then others became due: as
    they would be, for a read.
    """
    taken: dict[str, int] = {}
    found = [job for job in _slots_filled_by(store, now, ended, taken) if job.queue == queue]
    for job in due:
        name = concurrency_keys.of(job)
        if name is None or concurrency_keys.has_slot(job):
            found.append(job)
        elif concurrency_keys.free_slots(store, name) > taken.get(name, 0):
            taken[name] = taken.get(name, 0) + 1
            found.append(jobs.with_priority(job, concurrency_keys.priority(store, name, job)))
    return found


def _count_of(found: list[Job]) -> Counter[str | None]:
    """How many of some jobs each key has."""
    return Counter(concurrency_keys.of(job) for job in found)


def _slots_filled_by(store: Store, now: int, ended: list[Job], taken: dict[str, int]) -> list[Job]:
    """The jobs that would get a slot if others gave up theirs, without these themselves. `taken` returns the change in
    taken slots of each key.
    """
    through: dict[str, Job] = {}
    ahead: dict[str, list[str]] = {}
    gone = set()
    ends = _count_of(ended)
    for job in ended:
        name = concurrency_keys.of(job)
        gone.add(job.jid)
        if name is not None and (concurrency_keys.has_slot(job) or job.jid in through):
            taken[name] = taken.get(name, 0) - 1
            if name not in ahead:
                ahead[name] = concurrency_keys.first_parked(store, name, 2 * ends[name])
            while ahead[name] and concurrency_keys.free_slots(store, name) > taken[name]:
                jid = ahead[name].pop(0)
                if jid not in gone:
                    taken[name] += 1
                    one = jobs.load(store, jid)
                    priority = concurrency_keys.priority(store, name, one)
                    through[jid] = jobs.as_waiting(store, now, one, priority, len(through) + 1)
    return [job for jid, job in through.items() if jid not in gone]

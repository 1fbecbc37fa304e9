"""Admission by throttles: which jobs may be claimed, and how parked jobs continue when a throttle opens.

All throttles of a job are checked before any is charged, so a closed throttle costs the others nothing. A job that
meets a closed throttle is parked there, behind the parked jobs of its queue and priority. A parked job keeps its turn:
later jobs queue behind it, even after it was admitted and waits for its claim. It has the same turn at all throttles.

Pops of a queue admit its parked jobs; a job that frees capacity does not. So a queue that is paused, or has no worker,
reserves nothing, and a throttle that opens with time needs no one to open it.
"""

from __future__ import annotations

from qmodel.contract.operations import Put
from qmodel.contract.refusals import refuse
from qmodel.model.state import budget, config, history, jobs, options, parked, queues, throttles
from qmodel.model.state.records import NEVER, Job
from qmodel.model.state.store import Store, emit
from qmodel.model.state.throttles import Before

Passed = dict[str, Before]
"""For each throttle, the jobs that one pop has passed and not claimed yet: how many, and their cost."""

THROTTLES_MOST = 100
"""How many throttles one pop examines at a time."""

CHUNK = 100
"""How many parked jobs one pop examines at a throttle before it takes ready ones."""

NONE = (0, 0)


def check_names(named: tuple[str, ...], operation: str) -> None:
    """Refuse a queue's own throttle."""
    for name in named:
        if name.startswith(throttles.OWN):
            raise refuse("BAD_ARGUMENT", operation, "throttles")


def check_throttles(store: Store, op: Put, operation: str) -> None:
    """Refuse a job that names a queue's own throttle, or that costs more than the capacity of one of its buckets."""
    named = op.throttles or ()
    check_names(named, operation)
    if op.cost is None:
        return
    for name in (*named, throttles.OWN + op.queue):
        capacity = throttles.of(store, name).capacity
        if capacity and op.cost > capacity:
            raise refuse("OVER_CAPACITY", op.jid, name, op.cost, capacity)


def admits(store: Store, now: int, queue: str, job: Job, passed: Passed, holds: bool) -> bool:
    """Whether a queue's own throttle is open to a job."""
    own = throttles.own(store, queue)
    if not own:
        return True
    return throttles.opens_at(store, now, own, throttles.cost(job), passed.get(own, NONE), holds) <= now


def admitted(store: Store, now: int, queue: str, passed: Passed) -> int:
    """How many of its ready jobs a queue may hand out by its own throttle: 0 or 1, because they are asked for one at a
    time.
    """
    heads = queues.next_ready(store, queues.of(store, queue), 1)
    return 1 if heads and admits(store, now, queue, heads[0], passed, False) else 0


def passes(store: Store, now: int, job: Job, passed: Passed, holds: bool) -> bool:
    """Whether all throttles that a lifted job names are open to it; if not, park it at the first closed one."""
    if not job.options and not throttles.own(store, job.queue):
        return True
    named, cost = throttles.named(job), throttles.cost(job)
    throttle = options.get(job, "gate")
    parked.unreserve(store, job)
    if not holds:
        options.drop(job, "released")
    for name in named:
        before = passed.get(name, NONE)
        if not holds and throttle != name:
            before = _sum(before, parked.admitted(store, job.queue, name, job.priority, parked.turn(job)))
        opens = throttles.opens_at(store, now, name, cost, before, holds)
        if not holds and throttle != name and parked.is_behind(store, job, name):
            opens = NEVER
        if opens > now:
            _park(store, now, job, name, opens)
            return False
    for name in throttles.passed_by(store, job):
        passed[name] = _sum(passed.get(name, NONE), (1, throttles.taken(store, name, cost)))
    parked.forget_throttle(job)
    return True


def pass_alone(store: Store, now: int, job: Job, passed: Passed) -> tuple[str, int]:
    """Let a lifted job pass its throttles, whoever was admitted or is parked at those that it names: the rule of
    reqless. Give the first closed one, or empty, and when it opens.
    """
    if not job.options and not throttles.own(store, job.queue):
        return "", 0
    parked.unreserve(store, job)
    options.drop(job, "released")
    cost = throttles.cost(job)
    for name in throttles.named(job):
        opens = throttles.opens_at(store, now, name, cost, passed.get(name, NONE), False)
        if opens > now:
            return name, opens
    for name in throttles.passed_by(store, job):
        passed[name] = _sum(passed.get(name, NONE), (1, throttles.taken(store, name, cost)))
    parked.forget_throttle(job)
    return "", 0


def park_last(store: Store, now: int, job: Job, name: str, opens: int) -> None:
    """Park a lifted job behind all others, and note so in its history if it was not parked since its last claim."""
    if options.get(job, "gate") is None:
        history.add(store, now, job, "throttled", job.queue, name)
    parked.forget_throttle(job)
    _park(store, now, job, name, opens)


def _sum(one: Before, other: Before) -> Before:
    """Add two counts with their costs."""
    return one[0] + other[0], one[1] + other[1]


def _park(store: Store, now: int, job: Job, name: str, opens: int) -> None:
    """Park a lifted job. A job that was parked before, and has not run since, keeps its turn."""
    seq = emit(store, now, "throttled", job.jid, job.queue, name)
    options.set(job, "gate", name)
    if options.get(job, "parked") is None:
        options.set(job, "parked", seq)
    job.worker = job.grant = ""
    job.expires_at = 0
    jobs.place(store, job, "throttled")
    parked.lower(store, job.queue, name, opens)


def claimed(store: Store, now: int, job: Job) -> None:
    """Charge a claim to every throttle that the job passes."""
    for name in throttles.passed_by(store, job):
        throttles.spend(store, now, name, throttles.cost(job), job.token)


def park_or_admit(store: Store, now: int, job: Job) -> None:
    """Park a waiting job if one of its throttles is closed, or admit a parked one: the rules of reqless."""
    gate = options.get(job, "gate")
    if job.state == "throttled" and gate is not None:
        _unpark(store, now, job, gate)
    elif job.state == "waiting":
        cost = throttles.cost(job)
        for name in throttles.named(job):
            opens = throttles.opens_at(store, now, name, cost, NONE, False)
            if opens > now:
                jobs.lift(store, job)
                park_last(store, now, job, name, opens)
                return


def admit_parked(store: Store, now: int, queue: str, passed: Passed, most: int, alone: bool = False) -> int:
    """Admit parked jobs of a queue whose throttles may have opened, up to `most` and half of the budget; give how
    many. `alone`: only at throttles that may open although no job leaves them.
    """
    through, kept, some = 0, budget.room(store) // 2, False
    for name in parked.due(queues.of(store, queue), now, THROTTLES_MOST):
        if not budget.take(store, budget.THROTTLE, kept, some):
            break
        some = True
        if through < most and (not alone or throttles.opens_alone(store, name)):
            through += _admit_from(store, now, queue, name, passed, most - through, kept)
    return through


def _admit_from(store: Store, now: int, queue: str, name: str, passed: Passed, most: int, kept: int) -> int:
    """Admit the first jobs parked at a throttle, as far as it has room; then note when there may be more room."""
    waiting = parked.admitted(store, queue, name, float("inf"), NEVER)
    before = _sum(passed.get(name, NONE), waiting)
    through, opens = 0, 0
    for job in parked.parked(store, queue, name, min(most, CHUNK)):
        if not budget.take(store, budget.moving(job), kept, through):
            break
        opens = throttles.opens_at(store, now, name, throttles.cost(job), before, False)
        if opens > now:
            break
        _unpark(store, now, job, name)
        before = _sum(before, (1, throttles.cost(job)))
        through += 1
    parked.expect(store, queue, name, NEVER if opens > now and waiting[0] + through else opens)
    return through


def _unpark(store: Store, now: int, job: Job, name: str) -> None:
    """Move a parked job to the end of its priority. It keeps its turn at the throttle, in case that closes first."""
    parked = options.get(job, "parked")
    emit(store, now, "unthrottled", job.jid, job.queue, name)
    jobs.lift(store, job)
    options.set(job, "gate", name)
    options.set(job, "parked", str(parked))
    job.ready_at = now
    jobs.place(store, job, "waiting")


def opens_at(store: Store, now: int, name: str) -> int:
    """The next time at which throttles may admit a job of a queue by themselves, or 0."""
    queue = queues.of(store, name)
    first = parked.open_at(queue)
    moments = [max(first, now)] if first < NEVER else []
    own = throttles.own(store, name)
    if own:
        until = now - config.value(store, "grace-period")
        heads = [(job, True) for job in queues.lapsed(store, queue, until, 1)]
        heads += [(job, False) for job in queues.next_ready(store, queue, 1)]
        for job, holds in heads:
            opens = throttles.opens_at(store, now, own, throttles.cost(job), NONE, holds)
            if now < opens < NEVER:
                moments.append(opens)
    return min(moments, default=0)

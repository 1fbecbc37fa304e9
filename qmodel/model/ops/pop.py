"""Taking jobs out of queues: pop and peek."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Peek, Pop, PopAny
from qmodel.model.ops.lease import expiry, ran_too_long
from qmodel.model.rules import backoff, propagation, request_cancellation
from qmodel.model.rules.admission import Passed, admit_parked, admits, admitted, claimed, park_last, pass_alone, passes
from qmodel.model.rules.concurrency import admit, ending, place, preview, wait_for_time, yields
from qmodel.model.rules.failure import expire_due, expire_taken, fail_job, fail_revoked, is_revoked
from qmodel.model.rules.runs import drafts, fire_due
from qmodel.model.rules.suspension import holds
from qmodel.model.state import (
    budget,
    config,
    epochs,
    history,
    jobs,
    options,
    parked,
    queues,
    stats,
    throttles,
    ttl,
    turns,
    workers,
)
from qmodel.model.state.records import Job, Queue
from qmodel.model.state.store import Store, emit

CHUNK = 100
"""How many ready jobs, or ended leases, are read at once: the budget may end after fewer."""

LAPSED = "Its lease ran out, and no retries remained."
OFTEN = "Its lease ran out once more than its max_lapses."
JID = attrgetter("jid")
LAPSE = attrgetter("expires_at", "jid")
TOO_LONG = "It ran for longer than its timeout, and no retries remained."

Closed = tuple[str, Job, str, int]
"""A job that met a closed throttle: its id, itself, the throttle, and when that opens."""


def pop(store: Store, now: int, op: Pop) -> tuple[replies.Job, ...]:
    """Lease the next jobs of a queue to a worker."""
    again = workers.granted(store, op.worker, op.request)
    if again:
        return jobs.views(store, now, again)

    return grant(store, now, op.queue, op.worker, op.count, op.wait, op.request, op.qless, op.tries)


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Drop repeated names."""
    return list(dict.fromkeys(names))


def pop_any(store: Store, now: int, op: PopAny) -> tuple[replies.Job, ...]:
    """Lease the next jobs of several queues to a worker. The work for one queue is bounded, so the number of events is
    too.
    """
    again = workers.granted(store, op.worker, op.request)
    if again:
        return jobs.views(store, now, again)

    workers.seen(store, now, op.worker)
    names = _distinct(op.queues)
    granted: list[Job] = []
    for name in names:
        if len(granted) < op.count and not budget.is_cut(store):
            granted += _lease(store, now, name, op.worker, op.count - len(granted), op.request)
    jids = tuple([job.jid for job in granted])
    if jids:
        workers.remember(store, op.worker, op.request, jids)
    elif op.wait:
        for name in names:
            _await_work(store, name)
    if store.cascade:
        propagation.propagate(store, now)  # before the reply: a repeated call shows the same jobs
    return jobs.views(store, now, jids)


def grant(
    store: Store,
    now: int,
    queue: str,
    worker: str,
    count: int,
    wait: bool,
    request: str,
    qless: bool = False,
    tries: int | None = None,
) -> tuple[replies.Job, ...]:
    """Lease up to `count` jobs, and remember the grant under the request."""
    workers.seen(store, now, worker, exact=qless)
    granted = _lease(store, now, queue, worker, count, request, qless, tries)
    jids = tuple([job.jid for job in granted])
    if jids:
        workers.remember(store, worker, request, jids)
    elif wait:
        _await_work(store, queue)
    if store.cascade:
        propagation.propagate(store, now)  # before the reply: a repeated call shows the same jobs
    return jobs.views(store, now, jids)


def _await_work(store: Store, queue: str) -> None:
    """Count the caller as idle. Wake one worker if the pop has left work to the next one."""
    queues.await_work(store, queue)
    if budget.is_cut(store):
        queues.wake_one(store, queue)


def _lease(
    store: Store,
    now: int,
    queue: str,
    worker: str,
    count: int,
    request: str,
    qless: bool = False,
    tries: int | None = None,
) -> list[Job]:
    """Take the next jobs of a queue, unless it is paused, and lease them."""
    queue_state = queues.of(store, queue)
    if queue_state.pauses and holds(store, now, queue):
        return []
    if queue_state.ends and request_cancellation.end_due(store, now, queue):
        return []
    if qless and tries is not None:
        granted = _next_of_reqless(store, now, queue, queue_state, count, tries)
    elif qless:
        granted = _next_of_qless(store, now, queue, queue_state, count)
    else:
        granted = _next(store, now, queue, queue_state, count)
    for job in granted:
        _claim(store, now, job, worker, request, max(job.put_at, job.popped_at) if qless else job.ready_at)
    if store.aging:
        _age(store, queue, queue_state)
    return granted


def _age(store: Store, queue: str, queue_state: Queue) -> None:
    """Move the first jobs that became ready before the option `aging` was set to their places by age."""
    for job in queues.unaged(store, queue, queue_state, CHUNK):
        units = budget.moving(job)
        if budget.room(store) < units:
            break
        budget.spend(store, units)
        queues.age(store, job)


def _next(store: Store, now: int, queue: str, queue_state: Queue, count: int) -> list[Job]:
    """Take the next jobs out of their lists: stalled jobs first, then ready ones in order, including due jobs and due
    runs.
    """
    if not queues.is_due(queue_state, now):
        return _ready(store, now, queue, queue_state, count, {})
    passed: Passed = {}
    taken = _ended(store, now, queue, queue_state, count, passed)
    expire_due(store, now, queue, MOST)
    fire_due(store, now, queue, MOST)
    _promote_due(store, now, queue_state)
    found = _ready(store, now, queue, queue_state, count - len(taken), passed)
    return taken + found if taken else found


def _ended(store: Store, now: int, queue: str, queue_state: Queue, count: int, passed: Passed) -> list[Job]:
    """Take back ended leases until `count` jobs may run again (others may fail), as far as half of the budget goes."""
    until = now - config.value(store, "grace-period")
    taken: list[Job] = []
    kept, some = budget.room(store) // 2, False
    found = queues.lapsed(store, queue_state, until, count)
    while found:
        for job in found:
            units = _taking_back(store, now, job)
            if (some and not budget.fits(store, units, kept)) or not admits(store, now, queue, job, passed, True):
                return taken
            some = True
            budget.spend(store, units)
            counts = _counts(job)
            if _take_back(store, now, job) and passes(store, now, job, passed, counts):
                taken.append(job)
            if len(taken) == count:
                return taken
        found = queues.lapsed(store, queue_state, until, CHUNK)
    return taken


def _taking_back(store: Store, now: int, job: Job) -> int:
    """The units for taking back an ended lease: its job may give its slot to another one."""
    if _fails(job) or _waits(now, job):
        return ending(store, job)
    return budget.weight(job) + parked.freeing(store, job)


def _next_of_qless(store: Store, now: int, queue: str, queue_state: Queue, count: int) -> list[Job]:
    """Take the next jobs out of their lists by the rules of qless: those past their grace, then stalled ones, then
    ready ones in order, with as many due jobs and due runs as are wanted.
    """
    if not queues.is_due(queue_state, now):
        return _ready(store, now, queue, queue_state, count, {})
    passed: Passed = {}
    found = queues.lapsed(store, queue_state, now, MOST)
    taken = _take(store, now, queue, _in_state(found, "running", count), count, passed)
    expire_due(store, now, queue, MOST)
    left = count - len(taken)
    if left > 0:
        fire_due(store, now, queue, left, drain=True)
        _notice_due(store, now, queue_state, left)
        taken += _take(store, now, queue, _in_state(found, "stalled", left), left, passed)
    return taken + _ready(store, now, queue, queue_state, count - len(taken), passed)


def _next_of_reqless(store: Store, now: int, queue: str, queue_state: Queue, count: int, tries: int) -> list[Job]:
    """Take the next jobs out of their lists by the rules of reqless: without tries those past their grace, otherwise
    the others.
    """
    found = queues.lapsed(store, queue_state, now, MOST) if queues.is_due(queue_state, now) else []
    if tries == 0:
        return _take(store, now, queue, _in_state(found, "running", count), count, {})
    if queues.is_due(queue_state, now):
        expire_due(store, now, queue, MOST)
        fire_due(store, now, queue, count, drain=True)
        _notice_due(store, now, queue_state, count)
    if queue_state.parked:
        admit_parked(store, now, queue, {}, MOST, alone=True)
    return _heads(store, now, queue, queue_state, count, tries, _in_state(found, "stalled", MOST))


def _heads(
    store: Store, now: int, queue: str, queue_state: Queue, count: int, tries: int, stalled: list[Job]
) -> list[Job]:
    """Take jobs from the head of a queue, stalled ones first, in so many tries and as far as the budget goes; park
    those that meet a closed throttle, in the order of their ids. A queue with a throttle of its own hands them out one
    at a time, in one try as long as none is parked.
    """
    own, some = throttles.own(store, queue), False
    taken: list[Job] = []
    closed: list[Closed] = []
    passed: Passed = {}
    while tries > 0 and len(taken) < count and len(taken) + len(closed) < MOST:
        wanted = _next_alone(store, now, queue, stalled, passed) if own else count - len(taken)
        found, cut, stalled = _head(store, now, queue_state, wanted, stalled, some)
        all_pass = _sift(store, now, found, passed, taken, closed)
        if cut or (own and wanted == 0) or not (own or found):
            break
        some = True
        if not own or not all_pass:
            tries -= 1
    for _, job, name, opens in sorted(closed, key=itemgetter(0)):
        park_last(store, now, job, name, opens)
    return taken


def _sift(store: Store, now: int, found: list[Job], passed: Passed, taken: list[Job], closed: list[Closed]) -> bool:
    """Let lifted jobs pass their throttles; say whether all did."""
    before = len(closed)
    for job in found:
        name, opens = pass_alone(store, now, job, passed)
        if name:
            closed.append((job.jid, job, name, opens))
        else:
            taken.append(job)
    return len(closed) == before


def _next_alone(store: Store, now: int, queue: str, stalled: list[Job], passed: Passed) -> int:
    """How many jobs a queue may hand out by its own throttle, stalled ones first: 0 or 1."""
    budget.spend(store, budget.ALONE)
    if stalled:
        return 1 if admits(store, now, queue, stalled[0], passed, True) else 0
    return admitted(store, now, queue, passed)


def _head(
    store: Store, now: int, queue: Queue, count: int, stalled: list[Job], some: bool
) -> tuple[list[Job], bool, list[Job]]:
    """Lift the first live jobs of a queue; say whether the budget has cut them, and which are stalled still."""
    again, stalled = stalled[:count], stalled[count:]
    found = queues.take(store, queue, count - len(again))
    fit = budget.afford(store, [*again, *found], budget.weight, some)
    for job in again[:fit]:
        jobs.lift(store, job)
    mortal = queue.expires.size
    fresh = queues.keep_taken(store, queue, found, max(fit - len(again), 0))
    live = expire_taken(store, now, fresh) if mortal else fresh
    return [*again[:fit], *live], fit < len(again) + len(found), stalled


def _in_state(found: Sequence[Job], state: str, most: int) -> list[Job]:
    """The first jobs in a state, up to `most`: leases that end first, or ended leases by id in reverse."""
    every = [job for job in found if job.state == state]
    every.sort(key=JID if state == "stalled" else LAPSE, reverse=state == "stalled")
    return every[:most]


def _take(store: Store, now: int, queue: str, found: list[Job], count: int, passed: Passed) -> list[Job]:
    """Take jobs out of the locks: stalled ones, and those that are past their grace. Tell the
    holders of the others.
    """
    grace = config.value(store, "grace-period")
    taken: list[Job] = []
    kept, some = budget.room(store) // 2, False
    for job in found:
        if len(taken) == count or not budget.take(store, _taking_back(store, now, job), kept, some):
            break
        some = True
        if job.state == "running" and (grace <= 0 or options.get(job, "told") is None):
            _tell(store, now, job, grace)
            if grace > 0:
                continue
        if not admits(store, now, queue, job, passed, True):
            break
        counts = _counts(job)
        if _take_back(store, now, job) and passes(store, now, job, passed, counts):
            taken.append(job)
    return taken


def _tell(store: Store, now: int, job: Job, grace: int) -> None:
    """Tell the holder of a lapsed lease, which then has another grace-period."""
    emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "lapsed")
    history.add(store, now, job, "told", job.worker, job.token)
    stats.retried(store, now, job.queue)
    options.set(job, "told", job.expires_at)
    if grace > 0:
        queues.renew(store, job, now + grace)


def _notice_due(store: Store, now: int, queue_state: Queue, most: int) -> None:
    """Make due jobs ready from now, up to `most`; of one moment the later names come first, as in qless."""
    due = queues.due(store, queue_state, now, most + 1)
    for job in sorted(due[:most], key=JID, reverse=True):
        emit(store, now, "promoted", job.jid, job.queue)
        jobs.lift(store, job)
        job.ready_at = now
        place(store, now, job, admit(store, job))


def _ready(store: Store, now: int, queue: str, queue_state: Queue, count: int, passed: Passed) -> list[Job]:
    """Take ready jobs that have not expired and that pass their throttles, as far as the budget goes. It examines about
    1000 others at most.
    """
    own = throttles.own(store, queue) if store.throttles else ""
    taken: list[Job] = []
    closed = through = 0
    left = count
    while left > 0 and closed < MOST:
        if queue_state.parked:
            through += admit_parked(store, now, queue, passed, MOST - through)
        wanted = left if left < CHUNK else CHUNK
        if own:
            wanted = admitted(store, now, queue, passed)
        mortal = queue_state.expires.size
        found = queues.take(store, queue_state, wanted)
        if own:
            budget.spend(store, budget.ALONE)
        fit = budget.afford(store, found, budget.weight, left < count or closed > 0)
        before, kept = left, queues.keep_taken(store, queue_state, found, fit)
        for job in expire_taken(store, now, kept) if mortal else kept:
            if not (job.options or own) or passes(store, now, job, passed, False):
                taken.append(job)
        if fit < len(found):
            break
        left = count - len(taken)
        closed += len(found) - (before - left)
        if left > 0 and len(found) < max(wanted, 1) and _all_admitted(store, now, queue_state, through):
            break
    return taken


def _all_admitted(store: Store, now: int, queue: Queue, through: int) -> bool:
    """Whether this pop admits no further parked job."""
    return through == MOST or budget.is_cut(store) or not parked.due(queue, now, 1)


def _counts(job: Job) -> bool:
    """Whether a job with an ended lease need not pass its throttles again: a released stalled one must."""
    return job.state == "running" or options.get(job, "released") is None


def _fails(job: Job) -> bool:
    """Whether a job with a lapsed lease may not run again."""
    return job.state == "running" and (_is_spent(job) or is_revoked(job))


def _is_spent(job: Job) -> bool:
    """Whether a job has no retry left for a lapse; one with `max_lapses`, no lapse."""
    most = options.get(job, "max_lapses")
    return job.remaining == 0 if most is None else int(options.get(job, "lapses") or 0) >= int(most)


def _fail_spent(store: Store, now: int, job: Job, too_long: bool) -> None:
    """Fail a job with a lapsed lease that may not run again."""
    if options.get(job, "max_lapses") is not None:
        fail_job(store, now, job, "failed-lapses-" + job.queue, OFTEN)
    else:
        fail_job(store, now, job, "failed-retries-" + job.queue, TOO_LONG if too_long else LAPSED)


def _count_lapse(job: Job) -> None:
    """Count a lapse as a retry; for a job with `max_lapses`, by itself."""
    if options.get(job, "max_lapses") is not None:
        options.set(job, "lapses", int(options.get(job, "lapses") or 0) + 1)
    else:
        job.remaining -= 1


def _promote_due(store: Store, now: int, queue_state: Queue) -> None:
    """Move jobs that have become due into the order, as far as half of the budget goes."""
    kept, some = budget.room(store) // 2, False
    for job in queues.due(store, queue_state, now, MOST):
        if not budget.take(store, budget.moving(job), kept, some):
            break
        some = True
        emit(store, now, "promoted", job.jid, job.queue)
        _promote(store, now, job)


def _promote(store: Store, now: int, job: Job) -> None:
    """Move a job that has become due into the order, or park it at its concurrency key."""
    if admit(store, job) != "waiting":
        jobs.lift(store, job)
        place(store, now, job, "throttled")
    else:
        queues.promote(store, job)


def _take_back(store: Store, now: int, job: Job) -> bool:
    """Take a job with a lapsed lease out of its list; say whether it may run again. A lapse counts as a retry, unless
    the job has a limit of lapses; a job without any left fails.
    """
    if job.state == "stalled":
        jobs.lift(store, job)
        return True
    worker, token = job.worker, job.token
    too_long, told = ran_too_long(job), options.get(job, "told") is not None
    if not told:
        emit(store, now, "lock_lost", job.jid, job.queue, worker, token, "timeout" if too_long else "lapsed")
    jobs.lift(store, job)
    if not told:
        history.add(store, now, job, "timed_out" if too_long else "lapsed", worker, token)
    job.ready_at = job.expires_at
    if is_revoked(job):
        fail_revoked(store, now, job)
        return False
    if _is_spent(job):
        _fail_spent(store, now, job, too_long)
        return False
    delay_ms = backoff.delay(job)
    _count_lapse(job)
    if not told:
        stats.retried(store, now, job.queue)
    return job.ready_at + delay_ms <= now or _delay(store, now, job, delay_ms)


def _delay(store: Store, now: int, job: Job, delay_ms: int) -> bool:
    """Let a job that was taken back wait from the end of its lease; it may not run again now."""
    job.worker = job.grant = ""
    job.expires_at = 0
    job.ready_at += delay_ms
    wait_for_time(store, now, job)
    emit(store, now, "delayed", job.jid, job.queue, job.ready_at)
    jobs.place(store, job, "scheduled")
    return False


def _waits(now: int, job: Job) -> bool:
    """Whether a job with a lapsed lease waits before it may run again."""
    return job.state == "running" and job.expires_at + backoff.delay(job) > now


def _claim(store: Store, now: int, job: Job, worker: str, request: str, since: int) -> None:
    """Lease a lifted job to a worker; it has waited since a moment."""
    wait_ms = now - since if now > since else 0
    job.token = epochs.token(store, emit(store, now, "popped", job.jid, job.queue, worker, wait_ms))
    if store.throttles:
        claimed(store, now, job)
    job.worker = worker
    job.grant = request
    job.popped_at = now
    if job.options:
        job.expires_at = expiry(store, now, job)
        options.drop(job, "ttl_ms")
        options.drop(job, "ended")
    else:
        job.expires_at = now + config.heartbeat(store, job.queue)
    history.add(store, now, job, "popped", worker, job.token)
    stats.waited(store, now, job, worker, wait_ms)
    jobs.place(store, job, "running")


def _without(gone: set[str], found: Iterable[Job], most: int) -> list[Job]:
    """Leave out some jobs by id; give the first of the others."""
    return [job for job in found if job.jid not in gone][:most]


def _order(store: Store, now: int, queue: str, count: int, ended: list[Job], doomed: set[str]) -> list[Job]:
    """The jobs that would be ready, in order, after some jobs gave up their slots, as far as the budget goes: with due
    jobs and runs, without expired jobs.
    """
    queue_state, room = queues.of(store, queue), budget.room(store)
    over = _within(ttl.due(store, queue, now, MOST), room // 4)
    gone = {job.jid for job in over} | doomed
    due = _within(queues.due(store, queue_state, now, MOST + len(gone)), room // 4)
    order = _without(gone, _within(queues.next_ready(store, queue_state, count + len(gone)), room), count)
    coming = preview(store, now, queue, [*ended, *over], _without(gone, due, MOST))
    for job in drafts(store, now, queue, MOST):
        job.seq += 2 * MOST  # jobs that get a slot come before
        coming.append(job)
    if config.is_fair(store, queue):
        coming = _in_turn(queue_state, coming)
    places = [queues.standing(job) for job in order] + [queues.place(store, job) for job in coming]
    return [job for _, job in sorted(zip(places, order + coming, strict=True), key=itemgetter(0))]


def _in_turn(queue: Queue, coming: list[Job]) -> list[Job]:
    """Drafts of the jobs that would join a fair queue, with their turns: those that are due become ready last."""
    drafted = [jobs.with_priority(job, job.priority) for job in coming]
    drafted.sort(key=lambda job: job.state == "scheduled")
    turns.pretend(queue, drafted, queues.first)
    return drafted


def _within(found: Iterable[Job], units: int) -> list[Job]:
    """The first of some jobs, at least one, as far as reading them takes no more than some units."""
    first: list[Job] = []
    for job in found:
        units -= budget.moving(job)
        if first and units < 0:
            break
        first.append(job)
    return first


def _any_fails(now: int, found: Sequence[Job]) -> bool:
    """Whether one of some jobs would fail, or wait."""
    return any(_fails(job) or _waits(now, job) for job in found)


def _look_ended(store: Store, now: int, queue: str, count: int, doomed: set[str]) -> tuple[list[Job], list[Job]]:
    """The jobs with an ended lease that a pop would give, and those that would fail or yield their slot before, within
    half the budget.
    """
    queue_state, until = queues.of(store, queue), now - config.value(store, "grace-period")
    found = queues.lapsed(store, queue_state, until, count)
    if doomed or _any_fails(now, found):
        found = queues.lapsed(store, queue_state, until, MOST)
    shown: list[Job] = []
    ended: list[Job] = []
    for job in _within(found, budget.room(store) // 2):
        if job.jid in doomed:
            continue
        if len(shown) < count and (_fails(job) or (_waits(now, job) and yields(store, job))):
            ended.append(job)
        elif len(shown) < count and not _waits(now, job):
            shown.append(job)
    return shown, ended


def peek(store: Store, now: int, op: Peek) -> tuple[replies.Job, ...]:
    """Show the jobs that a pop would give next, as far as the budget goes. Parked jobs are left out, and throttles are
    not checked.
    """
    doomed = request_cancellation.doomed(store, now, op.queue)
    shown, ended = _look_ended(store, now, op.queue, op.count, doomed)
    for job in _order(store, now, op.queue, op.count, ended, doomed)[: op.count - len(shown)]:
        if not ttl.is_over(now, job) and not request_cancellation.is_doomed(store, now, job):
            shown.append(job)
    shown = shown[: budget.afford(store, shown, budget.weight)]
    return tuple(jobs.view(store, now, job) for job in shown)

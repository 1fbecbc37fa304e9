"""Commands for queues and workers, and commands that read."""

from __future__ import annotations

from functools import partial

from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Job, QueueCounts, Sample, Stats, WorkerCounts
from qmodel.dialects.qless import shapes, texts, throttles
from qmodel.dialects.qless.arguments import (
    first,
    limited,
    need,
    need_jid,
    need_queue,
    page,
    ranged,
    whole_of,
    window,
)
from qmodel.dialects.qless.jobs import see, tell_failed
from qmodel.dialects.qless.session import QlessError, Reply, Session
from qmodel.dialects.qless.settings import CONFIG, worker_age

# ---- taking


def pop(session: Session, queue: str | None = None, worker: str | None = None, count: str | None = None) -> Reply:
    """Lease the next jobs of a queue to a worker."""
    queue = need_queue(queue)
    worker = need("Pop", "worker", worker)
    most = _count_of("Pop", count)
    if session.reqless:
        return _pop_by_reqless(session, queue, worker, most)
    if session.is_paused(queue):
        return shapes.granted(session, ())
    bound = texts.whole(session.note(CONFIG, queue + "-max-concurrency"))
    if bound is not None and bound > 0:
        most = min(most, bound - session.running(queue))
    if most < 1:
        see(session, "Pop", worker)
        return shapes.granted(session, ())

    seq = session.seq
    granted: tuple[Job, ...] = session.ask("Pop", ops.Pop(queue, worker, most, qless=True))
    reply = shapes.granted(session, granted)
    for event in session.events(seq):
        _tell_popped(session, event)
    return reply


def _pop_by_reqless(session: Session, queue: str, worker: str, most: int) -> Reply:
    """Lease jobs: those that lapsed first. If the throttle of the queue is open then, others follow, in so many tries
    as `max-pop-retry` says.
    """
    throttles.end_throttles(session)
    if session.is_paused(queue):
        return shapes.granted(session, ())
    if most < 1:
        see(session, "Pop", worker)
        return shapes.granted(session, ())

    seq = session.seq
    granted: tuple[Job, ...] = session.ask("Pop", ops.Pop(queue, worker, most, qless=True, tries=0))
    failed = [str(event.facts[0]) for event in session.events(seq) if event.event == "failed"]
    throttles.admit(session, throttles.plan(session, failed, ended=True))
    if len(granted) < most and throttles.is_open(session, throttles.ours(throttles.OWN + queue)):
        tries = _tries(session, queue)
        granted += session.ask("Pop", ops.Pop(queue, worker, most - len(granted), qless=True, tries=tries))
    reply = shapes.granted(session, granted)
    for event in session.events(seq):
        _tell_popped(session, event)
    return reply


def _tries(session: Session, queue: str) -> int:
    """How many times a pop takes jobs from the head of a queue, for as many as throttles have kept back."""
    for option in (queue + "-max-pop-retry", "max-pop-retry"):
        found = texts.whole(session.note(CONFIG, option))
        if found is not None:
            return min(max(found, 1), MOST)
    return 1


def _count_of(command: str, text: str | None) -> int:
    found = texts.whole(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "count" missing or not a number: {texts.shown(text)}')
    return min(found, MOST)


def _tell_popped(session: Session, event: Event) -> None:
    facts = event.named
    jid = str(event.facts[0])
    if event.event == "lock_lost":
        session.tracked("stalled", jid)
        session.lost(jid, str(facts["worker"]))
    elif event.event == "failed":
        session.tracked("failed", jid)
        job = session.stored(jid)
        message = shapes.message(None if job is None else job.failure, str(facts["queue"]))
        tell_failed(session, jid, str(facts["worker"]), str(facts["group"]), message)
    elif event.event == "popped":
        session.tracked("popped", jid)


def peek(session: Session, queue: str | None = None, count: str | None = None, limit: str | None = None) -> Reply:
    """Show the jobs that a pop would give next. With three arguments, the second is the number of jobs to skip."""
    queue = need_queue(queue)
    if session.reqless and not session.early and (texts.number(count) is None or texts.number(limit) is None):
        name, given = ("limit", limit) if texts.number(count) is not None else ("offset", count)
        raise QlessError(f'Peek(): Arg "{name}" missing or not a number: {texts.shown(given)}')
    skip = 0 if limit is None else max(_count_of("Peek", count), 0)
    most = _count_of("Peek", count if limit is None else limit)
    if most < 1:
        return shapes.granted(session, ())

    most = min(skip + most, MOST)
    found = session.leased(queue, True, 0, most)
    left = most - len(found)
    if left > 0:
        if session.fires(queue):
            session.ask("Peek", ops.Fire(queue, left, qless=True))
        session.notice("Peek", queue, left)
        found += session.ready(queue, left)
    found = found[skip:]
    return shapes.granted(session, session.ask("Peek", ops.Multiget(tuple(found))) if found else ())


# ---- reading


def get(session: Session, jid: str | None = None) -> Reply:
    """Show a job; nothing if it does not exist."""
    found = session.ask("Get", ops.Get(need_jid(jid)))
    return None if found is None else shapes.job(session, found)


def multiget(session: Session, *jids: str) -> Reply:
    """Show the existing ones of several jobs."""
    return shapes.jobs(session, session.ask("Multiget", ops.Multiget(jids)) if jids else ())


LISTS = {"scheduled": ops.Scheduled, "depends": ops.Depending}


def jobs(session: Session, state: str | None = None, *arguments: str) -> Reply:
    """List the ids of jobs in a state."""
    state = need("Jobs", "state", state)
    if state == "complete":
        return list(page(session, "Jobs", ops.Completed, *window("Jobs", "offset", "count", *arguments[:2])).jids)
    if state not in (*LISTS, "recurring", "running", "stalled") and not (state == "throttled" and session.reqless):
        raise QlessError(f'Jobs(): Unknown type "{texts.shown(state)}"')
    queue = need("Jobs", "queue", first(arguments))
    begin, size = window("Jobs", "offset", "count", *arguments[1:3])
    if state in ("running", "stalled"):
        return session.leased(queue, state == "stalled", *limited(begin, size))
    if state == "recurring":
        return session.recurring(queue, *limited(begin, size))
    if state == "throttled":
        jids = session.parked_in(queue)
        begin, size = ranged(begin, size, len(jids))
        return jids[begin : begin + size]
    if state == "scheduled":
        session.notice("Jobs", queue, MOST)
    return list(page(session, "Jobs", partial(LISTS[state], queue), begin, size).jids)


def failed(session: Session, group: str | None = None, *arguments: str) -> Reply:
    """Count the failed jobs by group, or list the jobs of one group."""
    if group is None:
        tallies = session.ask("Failed", ops.FailedGroups(0, MOST))
        return texts.record([(tally.name, tally.jobs) for tally in tallies])
    found = page(session, "Failed", partial(ops.Failed, group), *window("Failed", "start", "limit", *arguments[:2]))
    listed = shapes.jobs(session, _whole(session, found.jids)) if session.document else found.jids
    return texts.record((("total", found.total), ("jobs", listed)))


def _whole(session: Session, jids: tuple[str, ...]) -> tuple[Job, ...]:
    """Read the jobs of a page: the documents show whole jobs instead of ids."""
    found: tuple[Job, ...] = session.ask("Failed", ops.Multiget(jids)) if jids else ()
    return found


def queues(session: Session, queue: str | None = None) -> Reply:
    """Count the jobs of all queues, or of one."""
    if queue is not None:
        session.notice("Queues", queue, MOST)
        return _counts(session, queue)
    listed, left = session.listed(), MOST
    for name in listed:
        left -= session.notice("Queues", name, left) if left > 0 else 0
    return texts.listed(_counts(session, name) for name in listed)


def _counts(session: Session, name: str) -> texts.Raw:
    """Write the counts of a queue."""
    of: QueueCounts = session.ask("Queues", ops.Queue(name))
    return shapes.queue(session, of)


def names(session: Session) -> Reply:
    """List the queues."""
    return texts.dump(session.listed())


def length(session: Session, queue: str | None = None) -> Reply:
    """Count the jobs of a queue that do not wait for others; reqless leaves out those that a throttle keeps back."""
    queue = need_queue(queue)
    of: QueueCounts = session.ask("Length", ops.Queue(queue))
    throttled = 0 if session.reqless else of.throttled
    return of.waiting + of.scheduled + of.running + of.stalled + throttled


def _part(session: Session, given: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Read the tag or the worker of `stats` from what follows the date. Anything else is ignored as surplus,
    or refused where a document says what a call has.
    """
    is_part = given[:1] in (("tag",), ("worker",)) and len(given) > 1
    known = 2 if is_part else 0
    if session.document and len(given) > known:
        raise QlessError(f"Stats(): Unexpected argument {given[known]}")
    if not is_part:
        return None, None
    return (given[1], None) if given[0] == "tag" else (None, given[1])


def stats(session: Session, queue: str | None = None, date: str | None = None, *given: str) -> Reply:
    """Show the statistics of a queue for the day of a time; by a tag or a worker, only its waits and runs."""
    queue = need_queue(queue)
    tag, worker = _part(session, given)
    is_part = (tag, worker) != (None, None)
    at = texts.number(date)
    if at is None or at >= texts.MOST / 1000:
        raise QlessError(f'Stats(): Arg "date" missing or not a number: {texts.shown(date)}')
    if at < 0:  # before 1970 nothing happened
        none = Stats(queue, 0, Sample(0, 0.0, 0.0, ()), Sample(0, 0.0, 0.0, ()), 0, 0, 0)
        return shapes.stats(session, none, is_part=is_part)
    found = session.ask("Stats", ops.Stats(queue, texts.milliseconds(at), tag, worker))
    return shapes.stats(session, found, is_part=is_part)


def workers(session: Session, worker: str | None = None) -> Reply:
    """Count the jobs of all workers, or list the jobs of one worker."""
    listed = _forget_silent(session)
    if worker is not None:
        running, lapsed = _leases(session, worker)
        return texts.record((("jobs", running), ("stalled", lapsed)))
    counts = []
    for one in listed:
        running, lapsed = _leases(session, one.name)
        counts.append(shapes.worker(one.name, len(running), len(lapsed)))
    return texts.listed(counts)


def _forget_silent(session: Session) -> list[WorkerCounts]:
    """Take workers off the list that are past their age and have no lease; give the others, latest seen first."""
    since = session.now - worker_age(session)
    found: tuple[WorkerCounts, ...] = session.ask("Workers", ops.Workers(0, MOST))
    silent = [one.name for one in found if one.seen_at <= since and not one.jobs + one.stalled]
    if silent:
        session.ask("Workers", ops.Deregister(tuple(silent)))
    return [one for one in found if one.name not in silent]


def _leases(session: Session, worker: str) -> tuple[list[str], list[str]]:
    """Find a worker's jobs with leases that have not lapsed, and that have; at its end a lease is both. The latest end
    comes first. Jobs that their holder was told it lost are left out.
    """
    both = session.ask("Workers", ops.Worker(worker))
    held = [job for jid in both.jobs + both.stalled if (job := session.stored(jid)) and "told" not in job.options]
    held.sort(key=lambda job: (job.expires_at, job.jid), reverse=True)
    running = [job.jid for job in held if job.expires_at >= session.now]
    return running, [job.jid for job in held if job.expires_at <= session.now]


# ---- changing


def _longest_failed(session: Session, group: str, most: int) -> tuple[str, ...]:
    """Find the longest failed jobs of a group, by their ids in reverse."""
    total = session.ask("Unfail", ops.Failed(group, 0, 1)).total
    found = session.ask("Unfail", ops.Failed(group, max(total - most, 0), most)).jids if total else ()
    return tuple(sorted(found, reverse=True))


def unfail(session: Session, queue: str | None = None, group: str | None = None, count: str | None = None) -> Reply:
    """Move the earliest failed jobs of a group to a queue, at most 1000 at a time; reply their number."""
    queue = need_queue(queue)
    group = need("Unfail", "group", group)
    most = 25 if count is None else min(whole_of("Unfail", "count", count), MOST)
    if most < 1 and session.reqless:
        raise QlessError('Unfail(): Arg "count" must be greater than zero')
    if most < 1:
        return 0

    jids = _longest_failed(session, group, most)
    if not jids:
        return 0

    moved = session.attempt(ops.RetryMany(group=group, to=queue, jids=jids))  # later names come first
    if type(moved) is Refusal:  # too large: as many as one call may move
        moved = session.ask("Unfail", ops.RetryMany(group=group, to=queue, count=most))
    session.remember(queue)
    return int(moved.done)


def pause(session: Session, *names: str) -> Reply:
    """Pause queues: pops give none of their jobs."""
    need("Pause", "queue", first(names))
    session.ask("Pause", ops.Pause(names))
    return None


def unpause(session: Session, *names: str) -> Reply:
    """Unpause queues."""
    need("Unpause", "queue", first(names))
    session.ask("Unpause", ops.Unpause(names))
    return None


def forget(session: Session, *names: str) -> Reply:
    """Take queues off the list; one that has jobs keeps them, and comes back with the next put."""
    paused = {name: session.ask("Queue.forget", ops.Queue(name)).paused for name in names}
    for name, is_paused in paused.items():
        gone = is_paused or type(session.attempt(ops.Forget((name,)))) is Refusal
        session.forget(name, gone)  # with jobs it only leaves the list, until the next put
    return None


def deregister(session: Session, *names: str) -> Reply:
    """Remove workers from the list."""
    if names:
        session.ask("Worker.deregister", ops.Deregister(names))
    return None

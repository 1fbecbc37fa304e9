"""Schedules: the recurring jobs, and when the next run of each is due.

A recurring job is not a job: it has an id in a namespace of its own and is never handed out. Its runs are jobs, called
`<jid>-<number>`, put through the same steps as any other. There are three kinds:

    interval   a run every interval_ms, anchored: at the first due time and every interval after it
    cron       a run at each time of a list, which a client that understands the expression supplies
    after      a run interval_ms after the previous one has ended, however it ended

The engine knows no calendar. An expression is only text to it; the client that creates or maintains a schedule supplies
up to 100 of the next due times at once. (With one at a time, nothing would run while no client is alive; with a
hundred, a daily job continues for a quarter of a year.) More are accepted only if they continue from the last known
time: so any number of clients may supply them, each time is known once, and there is one run for it. When all have
passed, the schedule is unset: it has no next run until more times are supplied.

Rules for runs:

- *Anchored.* A run is ready at exactly its due time, however late it is made: so the times do not drift, and the
  queue's order is right.
- *Exactly one for each due time.* A run is made in the step that advances its schedule. A run whose id belongs to an
  existing job (put by a client, or left by a deleted schedule of the same id) gets the next number; the job stays.
- *Made by pops.* Pop, complete_and_pop and fire make due runs; reads never do. Until then a due run is not a job: `get`
  does not find it, and no list or length includes it. Reads that ask what is to be done include it: `peek` shows it as
  it would be made, and the counts of a queue say how many schedules are due, and when the next one will be.
- *Missed runs.* If several are due, all are made, or the last one, or only those at most catchup_ms late; and those
  that were due more than backlog intervals ago (for a list: all but the last backlog) are skipped.
- *Bounds.* A schedule that has made limit runs, or whose next one would be after end_at, is deleted.
- *Suspension.* A paused schedule has nothing due. Neither has one without overlap while a run of it is unfinished. Its
  unfinished runs are counted: each has the option `schedule` and reports its end, and a failed run has ended. So no
  clock is involved, and a schedule is not suspended for longer than a run takes. Runs that were due meanwhile are
  skipped.
- *Bounded and fair.* One operation examines the 1000 schedules that have been due longest, and tries at most 1000 runs
  and half of its budget (state/budget.py), one of each in turn: a schedule that is far behind does not hold up others.
  With more than 1000 they come in the order of their due times, and only a limited number of others precede any due
  time: so each gets its turn.
- A queue with recurring jobs is on the list of queues and cannot be forgotten: it will have jobs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Recur
from qmodel.contract.refusals import refuse
from qmodel.model.state import budget, queues
from qmodel.model.state.queues import NO_TIME
from qmodel.model.state.records import Position, Schedule
from qmodel.model.state.store import Store

TIMES_MOST = 100
"""How many due times of a list are known at once."""


def get(store: Store, jid: str) -> Schedule | None:
    """A recurring job, or None if it does not exist."""
    return store.schedules.get(jid)


def find(store: Store, jid: str) -> Schedule:
    """A recurring job, or refuse."""
    schedule = store.schedules.get(jid)
    if schedule is None:
        raise refuse("SCHEDULE_NOT_FOUND", jid)
    return schedule


def draft(before: Schedule | None, jid: str) -> Schedule:
    """A copy of an existing schedule, or a new one, in no queue yet."""
    return copy(before) if before is not None else Schedule(jid)


def set_tags(schedule: Schedule, tags: Iterable[str]) -> None:
    """Set the tags of its runs, without repetitions."""
    schedule.tags = tuple(dict.fromkeys(tags))


def set_throttles(schedule: Schedule, names: Iterable[str]) -> None:
    """Set the throttles of its runs, without repetitions."""
    schedule.throttles = tuple(dict.fromkeys(names))


def is_suspended(schedule: Schedule) -> bool:
    """Whether a schedule has no due run until it is unpaused, or until an open run ends."""
    return schedule.paused or (schedule.overlap == "skip" and schedule.open > 0)


def _place(schedule: Schedule) -> Position:
    """Its position in the list of its queue."""
    return NO_TIME if is_suspended(schedule) else schedule.next_at, schedule.seq, schedule.jid


def _wants_times(schedule: Schedule) -> bool:
    """Whether it has a list of due times that continues after the last known one."""
    ends = schedule.end_at != 0 and schedule.last_at >= schedule.end_at
    return schedule.kind == "cron" and not ends and not is_suspended(schedule)


def enter(store: Store, schedule: Schedule) -> None:
    """Put it into its queue's list, and wake workers that sleep until a time that may be too late now."""
    _add(store, schedule)
    queues.wake_all(store, schedule.queue)


def _add(store: Store, schedule: Schedule) -> None:
    """Put it into its lists."""
    store.schedules[schedule.jid] = schedule
    store.queues[schedule.queue].recur.add(_place(schedule))
    if _wants_times(schedule):
        store.crons.add((schedule.last_at, schedule.seq, schedule.jid))


def save(store: Store, schedule: Schedule) -> None:
    """Store changes that do not affect its position."""
    store.schedules[schedule.jid] = schedule


def leave(store: Store, schedule: Schedule) -> None:
    """Take it out of its lists. Call it before changing any field that orders them."""
    before = store.schedules[schedule.jid]
    store.queues[before.queue].recur.remove(_place(before))
    if _wants_times(before):
        store.crons.remove((before.last_at, before.seq, before.jid))


def delete(store: Store, schedule: Schedule) -> None:
    """Delete a schedule that is in no list."""
    del store.schedules[schedule.jid]


# ---- times


def keeps_time(schedule: Schedule, op: Recur) -> bool:
    """Whether its due times stay the same."""
    return (
        schedule.kind == op.kind
        and schedule.interval_ms == op.interval_ms
        and schedule.offset_ms == op.offset_ms
        and schedule.cron == op.cron
        and schedule.start_at == op.start_at
    )


def begin(now: int, schedule: Schedule, times: tuple[int, ...]) -> None:
    """Set the first due time."""
    schedule.made = schedule.last_at = 0
    schedule.later = ()
    first = schedule.start_at + schedule.offset_ms
    if schedule.kind == "cron":
        schedule.next_at, schedule.last_at = NO_TIME, -1
        learn(schedule, times)
        if schedule.last_at < 0:
            schedule.last_at = max(now, schedule.start_at - 1)
    elif schedule.start_at == 0:
        schedule.next_at = now + schedule.offset_ms
    elif schedule.kind == "after":
        schedule.next_at = max(first, now)
    else:
        schedule.next_at = first
        skip(schedule, before(schedule, now))


def learn(schedule: Schedule, times: tuple[int, ...]) -> int:
    """Add the due times that follow the last known one; give how many. Times outside its bounds are left out, and
    beyond its end it needs no more.
    """
    known = [] if schedule.next_at == NO_TIME else [schedule.next_at, *schedule.later]
    had = len(known)
    for moment in times:
        if schedule.end_at and moment > schedule.end_at:
            schedule.last_at = max(schedule.last_at, schedule.end_at)
        elif moment > schedule.last_at and moment >= schedule.start_at and len(known) < TIMES_MOST:
            known.append(moment)
            schedule.last_at = moment
    _set_times(schedule, known)
    return len(known) - had


def _set_times(schedule: Schedule, known: list[int]) -> None:
    """Set the known due times."""
    schedule.next_at = known[0] if known else NO_TIME
    schedule.later = tuple(known[1:])


def before(schedule: Schedule, moment: int) -> int:
    """How many runs are due before a given time."""
    if schedule.next_at >= moment or schedule.kind == "after":
        return 0
    if schedule.kind == "cron":
        return 1 + bisect_left(schedule.later, moment)
    return (moment - schedule.next_at + schedule.interval_ms - 1) // schedule.interval_ms


def skip(schedule: Schedule, count: int) -> None:
    """Skip this many runs."""
    if schedule.kind == "cron":
        _set_times(schedule, [schedule.next_at, *schedule.later][count:])
    else:
        schedule.next_at += count * schedule.interval_ms


def count_run(schedule: Schedule) -> None:
    """Count a run that is made."""
    schedule.made += 1
    if schedule.overlap == "skip":
        schedule.open += 1


def move_on(schedule: Schedule) -> None:
    """Advance to the next due time after a run. With the kind `after` it is not known until the run ends."""
    count_run(schedule)
    if schedule.kind == "after":
        schedule.next_at = NO_TIME
    else:
        skip(schedule, 1)


def over(schedule: Schedule) -> str:
    """Why it has no more runs, or empty."""
    if schedule.limit and schedule.made >= schedule.limit:
        return "limit"
    known = schedule.next_at < NO_TIME or schedule.last_at >= schedule.end_at
    return "end" if schedule.end_at and schedule.next_at > schedule.end_at and known else ""


def pass_over(now: int, schedule: Schedule) -> int:
    """Skip the missed runs that are not to be made; give how many."""
    missed = 0
    if schedule.missed == "one":
        last = min(now, schedule.end_at) if schedule.end_at else now
        missed = before(schedule, last + 1) - 1
    elif schedule.missed == "none":
        missed = before(schedule, now - schedule.catchup_ms)
    if schedule.backlog:
        missed = max(missed, before(schedule, now) - schedule.backlog)
    missed = max(missed, 0)
    skip(schedule, missed)
    return missed


# ---- runs


def next_due(schedule: Schedule) -> int:
    """When its next run is due, or 0 while that is not known."""
    return 0 if schedule.next_at == NO_TIME or is_suspended(schedule) else schedule.next_at


def due(store: Store, queue: str, now: int, most: int, kept: int, by_id: bool = False) -> list[Schedule]:
    """The schedules with a due run, longest due first, as drafts that `advance` stores; as many as a budget that leaves
    `kept` can make a run of. `by_id`: those of one moment in the order of their ids.
    """
    found: list[Schedule] = []
    units = 0
    recur = queues.of(store, queue).recur
    jids = [
        place[-1] for place in (queues.in_time(recur, queues.FIRST, now, MOST) if by_id else recur.until(now, most))
    ]
    for jid in jids[:most]:
        schedule = store.schedules[jid]
        units += budget.of_run(store, schedule)
        if found and not budget.fits(store, units, kept):
            break
        found.append(copy(schedule))
    return found


def advance(store: Store, found: list[Schedule]) -> None:
    """Store the progress of schedules of one queue."""
    for schedule in found:
        leave(store, schedule)
        _add(store, schedule)


# ---- looking


def size(store: Store, queue: str) -> int:
    """How many jobs recur in a queue."""
    return len(queues.of(store, queue).recur)


def count_due(store: Store, queue: str, now: int) -> int:
    """How many of them have a due run that is not made yet."""
    return queues.count(queues.of(store, queue).recur, now)


def page(store: Store, queue: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many jobs recur in a queue, and a page of their ids, next due first."""
    places = queues.of(store, queue).recur
    return len(places), tuple(jid for _, _, jid in places[offset : offset + count])


def unset(store: Store, until: int, count: int) -> list[Schedule]:
    """Those whose known due times end by `until`, soonest first."""
    return [store.schedules[jid] for _, _, jid in store.crons.until(until, count)]


def view(schedule: Schedule) -> replies.Schedule:
    """Everything about a recurring job."""
    known = () if schedule.next_at == NO_TIME else (schedule.next_at, *schedule.later)
    return replies.Schedule(
        schedule.jid,
        schedule.queue,
        schedule.klass,
        schedule.data,
        schedule.priority,
        schedule.retries,
        schedule.tags,
        schedule.interval_ms,
        schedule.backlog,
        schedule.runs,
        next_due(schedule),
        schedule.kind,
        schedule.cron,
        known if schedule.kind == "cron" else (),
        schedule.last_at,
        schedule.offset_ms,
        schedule.start_at,
        schedule.end_at,
        schedule.limit,
        schedule.made,
        schedule.missed,
        schedule.catchup_ms,
        schedule.overlap,
        schedule.open,
        schedule.paused,
        schedule.throttles,
        schedule.fair_key,
        schedule.fair_weight,
    )

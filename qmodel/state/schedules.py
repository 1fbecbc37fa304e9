"""Schedules: the jobs that recur, and when the next run of each is due.

A recurring job is not a job: it has an id in a namespace of its own and is never handed out. Its runs are jobs, called
`<jid>-<number>`, put through the same steps as any other. What holds of them:

- *Anchored.* Runs are due at the first moment and every interval after it, and are ready at just that moment, however
  late they are made: so nothing drifts, and the queue's order is the true one.
- *Exactly one for each due time.* A run is made in the step that moves its schedule on. A run whose id belongs to a job
  already (put by somebody, or left by a schedule of the same id that was removed) gets the next number; the job stays.
- *Made when somebody takes.* Pop, complete_and_pop and fire make the runs that are due; reads never do. Until then a
  due run is no job: `get` does not find it, and no list or length holds it. Reads that ask what is to be done tell of
  it: `peek` shows it as it would be made, and the counts of a queue give how many schedules are due, and the next
  moment at which one will be.
- *Backlog.* Runs that were due longer ago than backlog intervals are passed over when the next one is made.
- *Bounded and fair.* One operation looks at the 1000 schedules that have been due for longest, and tries at most 1000
  runs, of each in turn: one that is far behind does not keep others waiting. More than 1000 come in the order of their
  due times, and before any due time there are only so many others: so each gets its turn.
- A queue in which something recurs is on the list of queues and cannot be forgotten: it will have jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from qmodel import replies
from qmodel.refusals import refuse
from qmodel.state import queues
from qmodel.state.store import Place, Store


class Schedule:
    """A recurring job. `runs` is the number of its last run."""

    __slots__ = (
        "backlog", "data", "interval_ms", "jid", "klass", "next_at", "priority", "queue", "retries", "runs", "seq",
        "tags",
    )  # fmt: skip

    def __init__(self, jid: str) -> None:
        self.jid = jid
        self.queue = self.klass = self.data = ""
        self.priority = self.retries = self.backlog = self.runs = 0
        self.interval_ms = 1
        self.next_at = self.seq = 0
        self.tags: tuple[str, ...] = ()


def get(store: Store, jid: str) -> Schedule | None:
    """A recurring job that may not exist."""
    return store.schedules.get(jid)


def find(store: Store, jid: str) -> Schedule:
    """A recurring job, or refuse."""
    schedule = store.schedules.get(jid)
    if schedule is None:
        raise refuse("SCHEDULE_NOT_FOUND", jid)
    return schedule


def create(jid: str) -> Schedule:
    """A new one, in no queue yet."""
    return Schedule(jid)


def set_tags(schedule: Schedule, tags: Iterable[str]) -> None:
    """Let its runs have these tags, each once."""
    schedule.tags = tuple(dict.fromkeys(tags))


def _place(schedule: Schedule) -> Place:
    return schedule.next_at, schedule.seq, schedule.jid


def enter(store: Store, schedule: Schedule) -> None:
    """Put it into its queue's list, and wake those who sleep until a moment that may be too late now."""
    store.schedules[schedule.jid] = schedule
    store.queues[schedule.queue].recur.add(_place(schedule))
    queues.wake_all(store, schedule.queue)


def save(store: Store, schedule: Schedule) -> None:
    """Keep what was changed of it that is not its place."""
    store.schedules[schedule.jid] = schedule


def leave(store: Store, schedule: Schedule) -> None:
    """Take it out of its queue's list."""
    store.queues[schedule.queue].recur.remove(_place(schedule))


def remove(store: Store, schedule: Schedule) -> None:
    """Delete it."""
    leave(store, schedule)
    del store.schedules[schedule.jid]


# ---- runs


def due(store: Store, queue: str, now: int, most: int) -> list[Schedule]:
    """Those that have a run due, longest due first, as drafts that `advance` stores."""
    return [copy(store.schedules[jid]) for _, _, jid in queues.of(store, queue).recur.until(now, most)]


def pass_over(now: int, schedule: Schedule) -> int:
    """Skip the runs that were due longer ago than backlog intervals; give how many."""
    if schedule.backlog == 0:
        return 0
    behind = now - schedule.next_at + schedule.interval_ms - 1
    missed = max(behind // schedule.interval_ms - schedule.backlog, 0)
    schedule.next_at += missed * schedule.interval_ms
    return missed


def advance(store: Store, found: list[Schedule]) -> None:
    """Keep how far schedules of one queue have come."""
    for schedule in found:
        leave(store, store.schedules[schedule.jid])
        store.schedules[schedule.jid] = schedule
        store.queues[schedule.queue].recur.add(_place(schedule))


# ---- looking


def size(store: Store, queue: str) -> int:
    """How many jobs recur in a queue."""
    return len(queues.of(store, queue).recur)


def count_due(store: Store, queue: str, now: int) -> int:
    """How many of them have a run due that is not made yet."""
    return queues.count(queues.of(store, queue).recur, now)


def page(store: Store, queue: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many jobs recur in a queue, and a page of their ids, next due first."""
    places = queues.of(store, queue).recur
    return len(places), tuple(jid for _, _, jid in places[offset : offset + count])


def view(schedule: Schedule) -> replies.Schedule:
    """Everything about a recurring job."""
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
        schedule.next_at,
    )

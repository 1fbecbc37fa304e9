"""What a namespace holds: the storage under all nouns.

In the model this is a handful of dictionaries and sorted lists; in Lua it is Redis, behind a gatherer of writes.
Sorted lists hold tuples that end in (sequence, jid): sequences are unique, so every order is total.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from qmodel.contract.events import Event
from qmodel.contract.replies import record
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.config import DEFAULTS

if TYPE_CHECKING:
    from qmodel.model.state.concurrency_keys import Line
    from qmodel.model.state.jobs import Job
    from qmodel.model.state.journal import Entry
    from qmodel.model.state.messages import Message
    from qmodel.model.state.queues import Queue
    from qmodel.model.state.requests import Request
    from qmodel.model.state.schedules import Schedule
    from qmodel.model.state.stats import Day
    from qmodel.model.state.subscriptions import Subscription
    from qmodel.model.state.throttles import Throttle
    from qmodel.model.state.uniques import Unique
    from qmodel.model.state.workers import Worker

Place = tuple[float, int, str]
"""A job in a sorted list: the moment that orders it, its sequence, its id."""

Told = tuple[int, str, *tuple[str | int, ...]]
"""An event as it is kept: its moment, its name, its facts. Its sequence is its place, for there are no gaps."""


class Store:
    """One namespace."""

    __slots__ = (
        "cascade", "completed", "config", "crons", "days", "events", "failed", "groups", "jobs", "journaled", "keeping",
        "lines", "messages", "metadata", "queues", "recorded", "request_states", "requested", "requests", "results",
        "schedules", "seq", "settings", "subscriptions", "tags", "throttles", "tracked", "unique_ends", "uniques",
        "workers", "workers_passed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seq = self.journaled = self.workers_passed = 0
        self.events: deque[Told] = deque(maxlen=10_000)
        self.recorded: deque[Entry] = deque(maxlen=100_000)
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.lines: dict[str, Line] = {}
        self.requested: dict[str, Request] = {}
        self.request_states: dict[str, Ordered[Place]] = {}
        self.schedules: dict[str, Schedule] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.messages: Ordered[Message] = Ordered()
        self.workers: dict[str, Worker] = {}
        self.completed: Ordered[Place] = Ordered()
        self.failed: Ordered[Place] = Ordered()
        self.keeping: Ordered[Place] = Ordered()
        self.crons: Ordered[Place] = Ordered()
        self.groups: SortedDict[str, Ordered[Place]] = SortedDict()
        self.tags: dict[str, Ordered[tuple[int, str]]] = {}
        self.tracked: dict[str, int] = {}
        self.throttles: dict[str, Throttle] = {}
        self.days: SortedDict[tuple[int, str], Day] = SortedDict()
        self.config: dict[str, int] = {}
        self.settings = DEFAULTS.copy()  # the options with those that nobody has set
        self.uniques: dict[str, Unique] = {}
        self.unique_ends: Ordered[Place] = Ordered()
        self.metadata: dict[str, dict[str, str]] = {}
        self.requests: dict[str, object] = {}
        self.cascade: dict[tuple[int, str, bool], None] = {}
        self.results: dict[str, dict[str, tuple[str, str, str]]] = {}


def emit(store: Store, *told: *Told) -> int:
    """Append an event (its moment, its name, its facts), and give its sequence."""
    store.seq = seq = store.seq + 1
    store.events.append(told)
    return seq


def keep_events(store: Store, most: int) -> None:
    """Keep this many events from now on."""
    store.events = deque(store.events, most)


def events_after(store: Store, after: int, count: int) -> tuple[Event, ...]:
    """The events after a sequence number, oldest first."""
    gone = store.seq - len(store.events)
    skip = max(after - gone, 0)
    told = enumerate(islice(store.events, skip, skip + count), gone + skip + 1)
    return tuple([record(Event, (seq, one[0], one[1], one[2:])) for seq, one in told])

"""The store: everything that a namespace holds.

The model uses a few dictionaries and sorted lists; Lua uses Redis, with a buffer of writes. The tuples in sorted lists
end in (sequence, jid): sequences are unique, so every order is total.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from sortedcontainers import SortedDict

from qmodel.contract.events import Event
from qmodel.contract.replies import record
from qmodel.contract.settings import DEFAULTS
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.records import (
    ConcurrencyKey,
    Day,
    Entry,
    Job,
    Message,
    Position,
    Queue,
    Request,
    Schedule,
    Subscription,
    Throttle,
    Told,
    Unique,
    Worker,
)


class Store:
    """One namespace."""

    __slots__ = (
        "aging", "cascade", "completed", "concurrency_keys", "config", "cooling", "crons", "cut", "days", "epoch",
        "epochs", "events", "failed", "fair", "families", "groups", "jobs", "journaled", "journals", "keeping",
        "messages", "metadata", "newest", "queues", "recorded", "request_states", "requested", "requests", "results",
        "room", "schedules", "seq", "settings", "subscriptions", "tags", "throttles", "tracked", "unique_ends",
        "uniques", "workers", "workers_passed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seq = self.epoch = self.journaled = self.workers_passed = self.room = 0
        self.epochs = [(0, 0)]  # the epochs of the kept events, each with its first event
        self.events: deque[Told] = deque(maxlen=10_000)
        self.recorded: deque[Entry] = deque(maxlen=100_000)
        self.cut = False
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.concurrency_keys: dict[str, ConcurrencyKey] = {}
        self.requested: dict[str, Request] = {}
        self.request_states: dict[str, Ordered[Position]] = {}
        self.schedules: dict[str, Schedule] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.messages: Ordered[Message] = Ordered()
        self.workers: dict[str, Worker] = {}
        self.completed: Ordered[Position] = Ordered()
        self.failed: Ordered[Position] = Ordered()
        self.keeping: Ordered[Position] = Ordered()
        self.newest: SortedDict[str, Ordered[Position]] = SortedDict()
        self.crons: Ordered[Position] = Ordered()
        self.groups: SortedDict[str, Ordered[Position]] = SortedDict()
        self.tags: dict[str, Ordered[tuple[int, str]]] = {}
        self.tracked: dict[str, int] = {}
        self.throttles: dict[str, Throttle] = {}
        self.families: list[tuple[str, int]] = []
        self.cooling: Ordered[Position] = Ordered()
        self.days: SortedDict[tuple[int, str], Day] = SortedDict()
        self.config: dict[str, int] = {}
        self.settings = DEFAULTS.copy()  # all options, defaults included
        self.fair = self.aging = False  # whether any queue is, or has
        self.journals = False  # whether operations are recorded
        self.uniques: dict[str, Unique] = {}
        self.unique_ends: Ordered[Position] = Ordered()
        self.metadata: dict[str, dict[str, str]] = {}
        self.requests: dict[str, object] = {}
        self.cascade: dict[tuple[int, str, bool], None] = {}
        self.results: dict[str, dict[str, tuple[str, str, str]]] = {}


def emit(store: Store, *told: *Told) -> int:
    """Append an event (its time, its kind, its facts), and give its sequence."""
    store.seq = seq = store.seq + 1
    store.events.append(told)
    return seq


def configure(store: Store, config: dict[str, int]) -> None:
    """Set which options have values of their own."""
    store.config = config
    store.settings = DEFAULTS | config
    store.journals = bool(store.settings["journal"])
    store.aging = any(value for name, value in config.items() if name.partition("-")[0] == "aging")
    store.fair = any(value for name, value in config.items() if name.partition("-")[0] == "fair")


def keep_events(store: Store, most: int) -> None:
    """Set how many events are kept."""
    store.events = type(store.events)(store.events, most)


def events_after(store: Store, after: int, count: int) -> tuple[Event, ...]:
    """The events after a sequence number, oldest first."""
    gone = store.seq - len(store.events)
    skip = max(after - gone, 0)
    told = list(enumerate(islice(store.events, skip, skip + count), gone + skip + 1))
    spans = [span for span in store.epochs if span[0] <= gone + skip + len(told)]
    at, epoch = 0, 0
    found = []
    for seq, one in told:
        while at < len(spans) and spans[at][0] <= seq:
            epoch = spans[at][1]
            at += 1
        found.append(record(Event, (seq, one[0], one[1], one[2:], epoch)))
    return tuple(found)

"""Records: the types of everything that a namespace holds.

They stand in one module below all nouns, so that the store can name them. In Lua a record is one packed text
(lua/state/records.lua).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from qmodel.contract import replies
from qmodel.contract.arguments import after_request
from qmodel.contract.operations import Operation, Put
from qmodel.model.sorted_list import Ordered

Position = tuple[float, int, str]
"""A job in a sorted list: the time that orders it, its sequence, its id."""


Place = tuple[int, int, int, str]
"""A ready job in the order of its queue: its priority (or less, if it stands by its age), its time or turn, its
sequence, its id.
"""

Told = tuple[int, str, *tuple[str | int, ...]]
"""An event as it is stored: its time, its kind, its facts. The sequence follows from its index, because there are no
gaps.
"""


class Nothing(dict[str, Any]):
    """The empty tags and dependencies that most jobs share; it cannot be changed. Three dictionaries for each job would
    cost more than all its other fields.
    """

    __slots__ = ()

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("it is every job's")


NONE: Final = Nothing()


class Job:
    """A job's record. The state is empty while the job is in no list; this happens only within a step. `aged` is the
    first number of the place of a ready job that stands by its age (state/aging.py); of any other job it is 0.
    """

    __slots__ = (
        "aged", "data", "dependencies", "dependents", "ended_at", "expires_at", "failure", "grant", "history", "jid",
        "klass", "options", "popped_at", "priority", "progress", "put_at", "put_request", "queue", "ready_at",
        "remaining", "result", "retries", "seq", "state", "tags", "token", "worker",
    )  # fmt: skip

    def __init__(self, jid: str) -> None:
        self.jid = jid
        self.state = self.klass = self.queue = self.data = self.worker = self.result = self.progress = ""
        self.put_request = self.grant = ""
        self.priority = self.seq = self.token = self.aged = 0
        self.retries = self.remaining = 5
        self.put_at = self.ready_at = self.popped_at = self.expires_at = self.ended_at = 0
        self.tags: dict[str, int] = NONE
        self.options: dict[str, str] = NONE
        self.failure: replies.Failure | None = None
        self.dependencies: dict[str, int] = NONE
        self.dependents: dict[str, int] = NONE
        self.history: list[Any] = []


class ParkedJobs:
    """The jobs of a queue that are parked at a throttle, and the admitted ones that still wait for their claim.

    Both are ordered by priority, then by the sequence at which each job was first parked. Admitted jobs have their
    cost.
    """

    __slots__ = ("admitted", "moment", "parked")

    def __init__(self) -> None:
        self.moment = NEVER
        self.parked: Ordered[tuple[int, int, str]] = Ordered()
        self.admitted: Ordered[tuple[int, int, int, str]] = Ordered()


class Turns:
    """The turns of the fair keys of a queue at one priority: how many jobs with a turn are in the order, and the next
    turn of each key, also in order.
    """

    __slots__ = ("jobs", "next", "order")

    def __init__(self) -> None:
        self.jobs = 0
        self.next: dict[str, int] = {}
        self.order: Ordered[Position] = Ordered()


class Queue:
    """One queue."""

    __slots__ = (
        "depends",
        "ends",
        "expires",
        "first_seen",
        "idle",
        "locks",
        "parked",
        "pauses",
        "ready",
        "recur",
        "scheduled",
        "throttled",
        "turns",
        "wakes",
    )

    def __init__(self) -> None:
        self.first_seen: int | None = None
        self.pauses: dict[str, int] = {}
        self.idle = 0
        self.wakes = 0
        self.ready: Ordered[Place] = Ordered()
        self.scheduled: Ordered[Position] = Ordered()
        self.depends: Ordered[Position] = Ordered()
        self.locks: Ordered[Position] = Ordered()
        self.throttled: Ordered[Position] = Ordered()
        self.expires: Ordered[Position] = Ordered()
        self.recur: Ordered[Position] = Ordered()
        self.ends: dict[str, int] = {}
        self.parked: dict[str, ParkedJobs] = {}
        self.turns: dict[int, Turns] = {}


class ConcurrencyKey:
    """The ids of the jobs that have a slot, and the parked jobs in the order of their ready times."""

    __slots__ = ("active", "parked")

    def __init__(self) -> None:
        self.active: dict[str, None] = {}
        self.parked: Ordered[Position] = Ordered()


class Request:
    """A request. It was opened with `first_priority` and `first_limit`; `priority` and `limit` may have been changed
    since. While a change of the sub-requests with a slot is under way, `reached` is the last one, by id, that it has
    reached; otherwise None. While the engine cancels it by itself, it is `ending`. `order` has its sub-requests as they
    were added; each is `unfinished` with a mark (state/requests.py), and `ended` says how each that has ended did so,
    and the sequence of its end. `jid` is what the dependencies of other jobs call it.
    """

    __slots__ = (
        "canceled", "data", "deadline_at", "dependents", "done", "ended", "ended_at", "ending", "fail_fast", "failed",
        "first_limit", "first_priority", "id", "jid", "keep_places", "lease_ms", "limit", "open_until", "opened_at",
        "order", "priority", "queue", "reached", "reason", "seq", "state", "state_at", "total", "unfinished",
    )  # fmt: skip

    def __init__(self, id: str, queue: str, priority: int, limit: int, now: int) -> None:
        self.id = id
        self.jid = after_request(id)
        self.queue = queue
        self.priority = self.first_priority = priority
        self.limit = self.first_limit = limit
        self.state = ""
        self.total = self.done = self.failed = self.canceled = 0
        self.opened_at = self.state_at = now
        self.ended_at = self.seq = 0
        self.reached: str | None = None
        self.deadline_at = self.lease_ms = self.open_until = 0
        self.fail_fast = self.ending = self.keep_places = False
        self.reason = ""
        self.unfinished: dict[str, int] = {}
        self.ended: dict[str, tuple[str, int]] = {}
        self.order: list[str] = []
        self.dependents: dict[str, int] = {}
        self.data = ""


class Schedule:
    """A recurring job. `runs` is the number of its last run, `made` how many runs it has made since its times were set,
    `open` how many runs have not ended, `since` the sequence at which it was created, and `last_at` the last known due
    time.
    """

    __slots__ = (
        "backlog", "catchup_ms", "cron", "data", "end_at", "fair_key", "fair_weight", "interval_ms", "jid", "kind",
        "klass", "last_at", "later", "limit", "made", "missed", "next_at", "offset_ms", "open", "overlap",
        "paused", "priority", "queue", "retries", "runs", "seq", "since", "start_at", "tags", "throttles",
    )  # fmt: skip

    def __init__(self, jid: str) -> None:
        self.jid = jid
        self.queue = self.klass = self.data = self.cron = self.fair_key = ""
        self.fair_weight = 0
        self.kind, self.missed, self.overlap = "interval", "all", "allow"
        self.priority = self.retries = self.backlog = self.runs = self.made = self.open = 0
        self.interval_ms = self.offset_ms = self.catchup_ms = self.start_at = self.end_at = self.limit = 0
        self.next_at = self.last_at = self.seq = self.since = 0
        self.later: tuple[int, ...] = ()
        self.paused = False
        self.tags: tuple[str, ...] = ()
        self.throttles: tuple[str, ...] = ()


class Subscription:
    """A subscription. `put` is the template of its jobs: a put without a job id and data."""

    __slots__ = ("name", "patterns", "position", "put", "seq")

    def __init__(self, name: str) -> None:
        self.name = name
        self.patterns: tuple[str, ...] = ()
        self.position: int | None = None
        self.put = Put("", "", "", "")
        self.seq = 0


class Message(NamedTuple):
    """One message. No message is older than the one before it, even if the clock goes back; it is due at `due_at`."""

    seq: int
    at: int
    due_at: int
    subject: str
    data: str


NEVER = 99_999_999_999_999
"""The time of an event that does not happen by itself."""


class Throttle:
    """One throttle. `generation` is that of a family, or of the family that its window and its bucket belong to; these
    are empty and full again at `cools_at`, which is 0 for a throttle that follows its own limits.
    """

    __slots__ = (
        "capacity", "claims", "concurrency", "cools_at", "generation", "held", "level", "level_at", "queues", "rate",
        "rate_ms", "refill", "refill_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.concurrency = self.rate = self.rate_ms = self.capacity = self.refill = self.refill_ms = 0
        self.level = self.level_at = self.generation = self.cools_at = 0
        self.held: Ordered[tuple[int, str]] = Ordered()
        self.claims: Ordered[tuple[int, int]] = Ordered()
        self.queues: set[str] = set()


class Unique:
    """A held deduplication key. `ends` is 0 if the end of the job decides."""

    __slots__ = ("ends", "jid", "key", "mode", "next", "since")

    def __init__(self, key: str, mode: str, jid: str, since: int, ends: int) -> None:
        self.key = key
        self.mode = mode
        self.jid = jid
        self.since = since
        self.ends = ends
        self.next = ""


class Worker:
    """One worker. `seen_at` is None if it is not on the list."""

    __slots__ = ("grants", "held", "seen_at")

    def __init__(self) -> None:
        self.seen_at: int | None = None
        self.held: dict[str, int] = {}
        self.grants: dict[str, tuple[str, ...]] = {}


class Sample:
    """Count, mean, sum of squared deviations and histogram of durations in milliseconds."""

    __slots__ = ("bins", "count", "mean", "squares")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0
        self.bins: dict[int, int] = {}


class Part:
    """The durations of the jobs with one tag, or of one worker."""

    __slots__ = ("run", "wait")

    def __init__(self) -> None:
        self.wait = Sample()
        self.run = Sample()


class Day:
    """The counts of a queue on a day."""

    __slots__ = ("failed", "failures", "minutes", "retries", "run", "swept", "tags", "wait", "workers")

    def __init__(self) -> None:
        self.wait = Sample()
        self.run = Sample()
        self.failures = self.failed = self.retries = 0
        self.minutes: dict[int, list[int]] = {}  # minute of the day -> completed, failed, retried, run ms
        self.swept = False  # whether its minutes were deleted
        self.tags: dict[str, Part] = {}
        self.workers: dict[str, Part] = {}


Entry = tuple[int, int, "Operation", Any, int]

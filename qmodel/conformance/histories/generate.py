"""Generate histories that are mostly meaningful, because the generator reads the model's state, and sometimes hostile.

A generator that does not know the state mostly tests refusals: of a thousand random completions, four name the token of
a lease. This generator either aims an operation (at a job in a state that allows it, with the token of its lease) or
draws it without reading the state. AIM gives the share of aimed tries. It is tuned so that every operation succeeds in
30 to 70 percent of its tries (`census` measures the share, a test checks it).

Names are few, so that operations meet at the same jobs. The clock stands still, creeps, jumps to the moment at which
something falls due or just beside it, jumps by days, and goes backward. Every history has its own weights (swarm
testing): some operations never occur in it, others occur often. Its names may be odd. Some options are set to small
values at its beginning, so that limits are reached.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

from qmodel.conformance.histories.choose import Chooser, pick
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract import settings
from qmodel.contract.arguments import (
    MOST,
    POLICIES,
    RESERVED,
    TIME_END,
    Awaited,
    Choice,
    Dependency,
    Edge,
    Flag,
    Id,
    Kind,
    Label,
    ListOf,
    Name,
    Text,
    Whole,
)
from qmodel.contract.arguments import Operations as OperationsKind
from qmodel.contract.lifecycle import STATES
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.settings import DAY
from qmodel.model import engine
from qmodel.model.state import config, queues
from qmodel.model.state.queues import NO_TIME, length
from qmodel.model.state.records import NEVER, Job, Queue, Schedule
from qmodel.model.state.store import Store
from qmodel.model.state.throttles import LIMITS, OWN, is_set

NEVER_IN_A_REQUEST = ("priority", "ordered", "unique", "unique_mode", "unique_ms", "unique_max_ms")
"""The options of a put that a sub-request cannot have: its request sets them, or decides the order itself."""


def _with(op: Operation, name: str, value: Any) -> Operation:
    """Copy an operation with another value of one argument; the value may be hostile."""
    changed: Operation = replace(op, **{name: value})  # type: ignore[type-var]
    return changed


class Names(NamedTuple):
    """The names that a history uses."""

    jids: tuple[str, ...]
    queues: tuple[str, ...]
    workers: tuple[str, ...]
    tags: tuple[str, ...]
    groups: tuple[str, ...]
    klasses: tuple[str, ...]
    throttles: tuple[str, ...]


PLAIN = Names(
    ("a", "b", "c", "d", "e"), ("q", "r", "s"), ("u", "v", "w"), ("red", "blue", "tall"),
    ("g", "h"), ("k", "l"), ("x", "y"),
)  # fmt: skip
KEYS = Names(  # names that collide where keys are made by joining names
    ("j", "j:a", "q:q", "-", "{a}"), ("q", "q-locks", "q-work"), ("w", "w:jobs", "*"),
    ("t", "t:t", "tags"), ("g", "failed-retries-q"), ("k:k", "k"),
    ("x", "x-held"),
)  # fmt: skip
NUMBERS = Names(  # names that a careless language takes for numbers, booleans or nothing
    ("1", "01", "1e0", "0x1", "nil"), ("0", "-0", "1.0"), ("true", "false", "null"),
    ("7", "07", "7.0"), ("0", "inf"), ("nan", "{}"), ("1", "01"),
)  # fmt: skip
WIDE = Names(  # names that a careless encoding breaks; the first two queues sort differently in UTF-16
    ("~", "!", "%s", "\\", '"'), ("\U0001f600", "\uffee", "é é"), ("ü", " ", "\u2028"),
    ("ß", "ẞ", "%d"), ("\U0001f600", "\uffee"), ("'", "\\0"), ("%s", "~"),
)  # fmt: skip
STYLES = (PLAIN, PLAIN, PLAIN, PLAIN, KEYS, NUMBERS, WIDE)
REQUEST_IDS = ("r1", "r2")
EDGE_NAMES = ("left", "right", "~!", "n" * 64)
REQUEST_NAMES = ("R", "S:1", "t-")
WIDTHS = (1, 1, 2, 3, 1000)

STARTS = (1_700_000_000_123,) * 12 + (19_676 * DAY - 2_500,) * 4 + (0, 0, TIME_END - 10**9)
"""Where clocks start: at an ordinary moment, just before midnight, at the beginning or (nearly) the end of time."""

DATA = ("", "{}", "x", '{"a": [1, 2.50]}', "null", "[]", "1e3", "é\x00\r\n\U0001f600", "a/b\\\t", "y" * 1200)
LINES = ("", "so far", "é\n", "\\n\t\\", "z" * 1024)
DELAYS = (0,) * 8 + (1, 500, 1000, 1000, 60_000, DAY, 3660 * DAY)
PACES = ((1, 1), (450, 1), (1000, 2), (60_000, 1), (60_000, 3), (DAY, 2), (31 * DAY, 0), (3660 * DAY, 1_000_000))
"""Intervals, each with a limit of the backlog, so that a jump of the clock does not start a thousand runs; the directed
history `runs_of_many` does that."""
KEEPS = (0, 0, 1, 450, 1000, DAY, 3660 * DAY)
LIVES = (1, 1, 450, 1000, 59_999, DAY, 3660 * DAY)
UNIQUE_MODES = (None, "pending", "window", "debounce", "debounce", "again", "again", "again")
LEASES = (1, 500, 1000, 60_000, 61_000, 3660 * DAY)
CURSORS = (
    "x", "ready", "ready 0 0", "ready 0 0 0", "ready -5 1 2", "scheduled 0 0", "locks -inf 0", "locks -inf -1 ",
    "tag 0", "tag 01", "held 0 ", "group 0 0", "group 0 0 g", "group 0 0 g h", "completed 99999999999999 0",
    "completed 1e3 0",
)  # fmt: skip
METADATA_KEYS = ("n", "key", "é :")
METADATA_NUMBERS = ("0", "7", "-5", "99999999999999", "-99999999999999", "007", "1.0", "-0", " 1", "100000000000000")
AMOUNTS = (1, 1, 1, -1, 0, 5, 10**14 - 1, -(10**14) + 1)
REASONS = ("by hand", "by hand", "rate", "deploy")
SPANS = (0, 0, 1, 1000, 1000, 60_000)
"""How long pauses last, in milliseconds; 0 is for ever."""
COSTS = (None,) * 8 + (1, 2, 3, 1_000_000)
PERIODS = (1, 1000, 1000, 86_400_000)
SUBJECTS = ("a", "a.b", "a.b.c", "a.b", "b.b", "é.b", "a.%s")
PATTERNS = ("a", "a.*", "a.>", "*", ">", "*.b", "a.*.c", "*.*", "é.>", "*.>")
BAD_SUBJECTS = ("a..b", ".", "a.*", ">", "a.b.")
BAD_PATTERNS = ("a..b", "a.>.b", "a*", "*.b.", "x>")
PRIORITIES = (0, 1, -1, 5, 5, -(2**31), 2**31 - 1)
COUNTS = (1, 1, 1, 1, 2, 2, 3, 25, MOST)
OFFSETS = (0,) * 12 + (1, 1, 2, 25, 10**9)

SETTINGS: dict[str, tuple[int, ...]] = {
    "heartbeat": (1, 100, 1000, 60_000),
    "grace-period": (0, 0, 1, 500, 10_000),
    "fair": (0, 1, 1),
    "aging": (0, 1, 30, 1000, 60_000, 366 * DAY),
    "jobs-history": (0, 1, 1000, 7 * DAY),
    "jobs-history-count": (0, 1, 2, 3),
    "failed-history": (0, 1, 1000, 7 * DAY),
    "failed-history-count": (0, 1, 2, 3),
    "requests-history": (0, 1, 1000, DAY),
    "stats-history": (0, 1, 2),
    "histogram-history": (0, 1, 2),
    "metrics-history": (0, 1, 3, 1440, 2880),
    "max-job-history": (4, 5, 6, 7),
    "max-worker-age": (0, 1, 2000, DAY),
    "max-events": (1, 2, 5, 20),
    "journal": (0, 1, 1),
    "max-journal": (0, 1, 5, 20, 40),
    "messages-history": (0, 1, 1000, DAY),
    "messages-history-count": (0, 1, 2, 5),
    "stats-tags": (0, 1, 2),
    "stats-workers": (0, 1, 2, 200),
}
OPTIONS = tuple(SETTINGS)
RATES = (1, 30, 1000, 1000, 60_000)
"""In how many milliseconds a job improves by one priority, where a history begins with the option `aging`."""

WEIGHTS = {
    "put": 14, "put_many": 5, "put_new": 2, "pop": 12, "pop_any": 9, "peek": 3, "complete": 6, "complete_many": 3,
    "complete_and_pop": 6, "fail": 5, "retry": 5, "release": 4, "heartbeat": 4, "timeout": 4, "revoke": 3, "replay": 3,
    "update": 2, "priority": 3, "delay": 3, "promote": 3, "log": 3, "progress": 2, "cancel": 7,
    "drain": 2, "depends_on": 4, "depends_off": 4, "tag_add": 3, "tag_remove": 3, "track": 3,
    "untrack": 3, "pause": 2, "unpause": 3, "forget": 2, "deregister": 2,
    "config_set": 3, "config_unset": 2, "recur": 3, "unrecur": 3, "recur_update": 2, "recur_tag": 2, "recur_untag": 2,
    "fire": 2, "request_open": 2, "request_touch": 1, "request_add": 4, "request_close": 2, "request_put": 2,
    "request_tune": 2, "request_cancel": 1, "request_forget": 2,
    "recur_pause": 1, "recur_unpause": 2, "recur_now": 2, "recur_advance": 3,
    "throttle_set": 3, "throttle_unset": 2, "throttled": 2, "unique_release": 2,
    "metadata_set": 2, "metadata_increment": 2, "metadata_unset": 2,
    "search": 3, "cancel_many": 6, "clean": 3, "retry_many": 7, "obliterate": 1,
    "publish": 4, "subscribe": 3, "catch_up": 5, "unsubscribe": 2, "trim": 2, "begin_epoch": 1,
}  # fmt: skip
"""How often an operation is drawn in a history without weights of its own; reads have weight 1."""

THROTTLE_WEIGHTS = {
    "put": 12, "put_many": 12, "pop": 34, "recur": 0, "timeout": 2, "cancel": 2, "throttled": 6, "throttles_used": 6,
}  # fmt: skip
"""Other weights, for histories that test throttles."""

AIM = dict.fromkeys(CATALOGUE, 70) | {
    "request_forget": 90, "begin_epoch": 50,
    "put": 20, "put_many": 60, "pop": 45, "pop_any": 45, "peek": 50, "update": 45, "priority": 45, "log": 45,
    "tagged": 50, "get": 40, "multiget": 20, "queue": 25, "length": 28, "pause": 15, "config_get": 60, "config_set": 7,
    "config_unset": 50, "depends_on": 85, "track": 60, "unpause": 80, "running": 82, "stalled": 100,
    "scheduled": 88, "top_tags": 85, "failed_groups": 90, "forget": 85, "recur_untag": 80,
    "recur_pause": 50, "recur_unpause": 92, "recur_advance": 92, "waiting": 60,
    "recurring": 65, "recurring_unset": 88, "throttle_set": 20, "why": 40, "throttle_get": 40, "throttled": 92,
    "cancel_many": 96, "clean": 90, "retry_many": 90, "search": 90, "replay": 93,
    "metadata_set": 50, "metadata_unset": 80, "metadata_get": 80,
    "publish": 80, "subscribe": 80, "catch_up": 97, "messages": 60, "subscriptions": 60,
    "results": 90, "fail": 62, "metrics": 92, "journal": 92, "trim": 66,
}  # fmt: skip
"""The percentage of an operation's tries that are aimed."""

NEEDS = {
    "revoke": ("running", "pop"),
    **dict.fromkeys(
        ("complete", "complete_many", "complete_and_pop", "fail", "retry", "release", "heartbeat", "timeout",
         "progress", "running", "worker"), ("running", "pop")),
    **dict.fromkeys(("pop", "pop_any", "peek", "waiting", "cancel", "drain"), ("waiting", "put")),
    **dict.fromkeys(("depends_on", "depends_off", "depending"), ("depends", "put")),
    "throttled": ("throttled", "pop"),
    **dict.fromkeys(("throttle_unset", "throttle_get", "throttles"), ("", "throttle_set")),
    **dict.fromkeys(("promote", "scheduled"), ("scheduled", "put")),
    **dict.fromkeys(("retry_many", "failed", "failed_groups"), ("failed", "fail")),
    "stalled": ("running", "pop"),
    **dict.fromkeys(("completed", "clean"), ("complete", "complete")),
    "results": ("", "put"),
    "untrack": ("", "track"),
    "tracked": ("", "track"),
    "tag_remove": ("", "tag_add"),
    "tagged": ("", "tag_add"),
    "top_tags": ("", "tag_add"),
    "unpause": ("", "pause"),
    **dict.fromkeys(("unrecur", "recur_get", "recur_update", "recur_tag", "recurring", "fire"), ("", "recur")),
    "recur_untag": ("", "recur_tag"),
    **dict.fromkeys(("recur_pause", "recur_now", "recur_advance", "recurring_unset"), ("", "recur")),
    "recur_unpause": ("", "recur_pause"),
    **dict.fromkeys(("unsubscribe", "subscription_get", "subscriptions"), ("", "subscribe")),
    **dict.fromkeys(("messages", "trim"), ("", "publish")),
    "workers": ("", "pop"),
    **dict.fromkeys(("metadata_get", "metadata_unset"), ("", "metadata_set")),
    **dict.fromkeys(("request_add", "request_touch", "request_close"), ("", "request_open")),
    **dict.fromkeys(("request_get", "requests", "request_jobs", "request_tune", "request_cancel"), ("", "request_put")),
    "request_forget": ("", "request_close"),
    "stats": ("", "pop"),
    "metrics": ("", "complete"),
    "unique_get": ("", "put"),
    "unique_release": ("", "put"),
    "journal": ("recorded", "config_set"),
}  # fmt: skip
"""What an aimed operation needs: a job in this state (or, if the state is empty, that its test in PRESENT is true), and
the operation that brings this about."""

PRESENT: dict[str, Callable[[Store], object]] = {
    "results": lambda store: store.results,
    "untrack": lambda store: store.tracked,
    "tracked": lambda store: store.tracked,
    "tag_remove": lambda store: store.tags,
    "tagged": lambda store: store.tags,
    "top_tags": lambda store: any(len(jobs) > 1 for jobs in store.tags.values()),
    "unpause": lambda store: any(queue.pauses for queue in store.queues.values()),
    **dict.fromkeys(
        ("unrecur", "recur_get", "recur_update", "recur_tag", "recurring", "fire"), lambda store: store.schedules
    ),
    "recur_untag": lambda store: any(one.tags for one in store.schedules.values()),
    "recur_pause": lambda store: any(not one.paused for one in store.schedules.values()),
    "recur_unpause": lambda store: any(one.paused for one in store.schedules.values()),
    "recur_now": lambda store: store.schedules,
    "recur_advance": lambda store: any(one.kind == "cron" for one in store.schedules.values()),
    "recurring_unset": lambda store: store.crons,
    **dict.fromkeys(
        ("throttle_unset", "throttle_get", "throttles"), lambda store: any(map(is_set, store.throttles.values()))
    ),
    **dict.fromkeys(("unsubscribe", "subscription_get", "subscriptions"), lambda store: store.subscriptions),
    **dict.fromkeys(("messages", "trim"), lambda store: store.messages.size),
    "workers": lambda store: store.workers,
    **dict.fromkeys(("metadata_get", "metadata_unset"), lambda store: store.metadata),
    **dict.fromkeys(("request_add", "request_touch", "request_close"), lambda store: store.request_states.get("open")),
    **dict.fromkeys(("request_get", "request_jobs", "requests"), lambda store: store.requested),
    **dict.fromkeys(
        ("request_tune", "request_cancel"),
        lambda store: any(store.request_states.get(state) for state in ("open", "closed", "canceling")),
    ),
    "request_forget": lambda store: store.request_states.get("done") or store.request_states.get("canceled"),
    "stats": lambda store: store.days,
    "metrics": lambda store: any(day.minutes for day in store.days.values()),
    **dict.fromkeys(("unique_get", "unique_release"), lambda store: store.uniques),
    "journal": lambda store: store.recorded,
}

HOSTILE_PERCENT = 5
RESEND_PERCENT = 6


class Generator:
    """Draws one history, one step at a time, and reads the model's store to aim."""

    def __init__(self, chooser: Chooser, *, typed: bool = True, qless: bool = False) -> None:
        """`typed` allows values that only a Python caller can send, such as None for a text: on a wire all is text.
        `qless` draws calls by the rules of qless too.
        """
        self._chooser = chooser
        self._qless = qless
        self._below = chooser.below
        self._hostile = HOSTILE if typed else WIRE_HOSTILE
        self._past: list[Operation] = []
        self._fresh = 0
        self._store = Store()
        self._aimed = True
        self._wanted = ""
        self._names = PLAIN
        self._set_up: list[Operation] = []
        self._draws, self._limits = _even()
        self._throttling = self._fair = False
        self._families: tuple[str, ...] = ()
        self._now = STARTS[0]
        self._begun = False

    def step(self, store: Store) -> Step | None:
        """Draw the next step, or None when the chooser leaves it out."""
        if not self._begun:
            self._begin()
        if not self._chooser.begin():
            return None
        self._store = store
        now = self._clock()
        op = self._set_up.pop() if self._set_up else self._operation()
        self._past.append(op)
        return Step(now, op)

    # ---- the weights and settings of a history

    def _begin(self) -> None:
        self._begun = True
        self._chooser.begin()
        self._names = pick(self._chooser, STYLES)
        self._now = pick(self._chooser, STARTS)
        self._set_up = [self._setting() for _ in range(pick(self._chooser, (0, 0, 1, 2, 3)))]
        if self._below(4):
            self._draws, self._limits = self._swarm()
        self._throttling = self._below(5) < 2
        self._fair = self._below(10) == 9
        if self._fair:
            self._set_up.append(ops.ConfigSet("fair", 1, self._request()))
        elif self._below(8) == 7:
            self._set_up.append(ops.ConfigSet("aging", pick(self._chooser, RATES), self._request()))
        if self._throttling:
            if self._below(4):
                self._draws, self._limits = _even(THROTTLE_WEIGHTS)
            self._names = self._names._replace(queues=self._names.queues[: 1 + self._below(2)])
            self._families = (self._names.throttles[0] + "*", "*", "**") if self._below(3) == 2 else ()
            self._set_up += [self._set_limits(self._limited(0)) for _ in range(1 + self._below(2))]

    def _swarm(self) -> tuple[tuple[str, ...], list[int]]:
        """Draw a weight for each operation: a third of the usual one, the usual one, three times it, or 0."""
        names = tuple(CATALOGUE)
        factors = (3, 3, 1, 9, 0)
        weights = [WEIGHTS.get(name, 1) * pick(self._chooser, factors) for name in names]
        weights[0] = max(weights[0], 3 * WEIGHTS["put"])  # without jobs there is no history
        return names, list(accumulate(weights))

    def _setting(self) -> Operation:
        option = pick(self._chooser, OPTIONS)
        value = pick(self._chooser, SETTINGS[option])
        if option in settings.PER_QUEUE and self._below(2):
            option += "-" + pick(self._chooser, self._names.queues)
        return ops.ConfigSet(option, value, self._request())

    # ---- the clock

    def _clock(self) -> int:
        """Move the clock; rarely return a moment out of bounds."""
        if self._below(400) == 399:
            return (-1, TIME_END)[self._below(2)]
        self._now = min(max(self._moved(), 0), TIME_END - 1)
        return self._now

    def _moved(self) -> int:
        now, way = self._now, self._below(100)
        if way < 40:
            return now
        if self._throttling and self._below(4):
            return now + (0, 1, 7, 500, 1000)[self._below(5)]
        if way < 60:
            return now + (1, 7, 450, 1000)[(way - 40) // 5]
        if way < 84:
            return self._due(now)
        if way < 90:
            return now + config.value(self._store, "heartbeat")
        if way < 93:
            return now + config.value(self._store, "grace-period")
        if way < 96:
            return now + pick(self._chooser, (1, 1, 2, 8, 31, 400)) * DAY
        if way < 99:
            return now - pick(self._chooser, (1, 999, 5000, DAY, 3 * DAY))
        return now + 20

    def _due(self, now: int) -> int:
        """Choose a moment at which something falls due, or the millisecond before or after it."""
        store = self._store
        grace = config.value(store, "grace-period")
        moments = [now - now % DAY + DAY]
        for queue in store.queues.values():
            moments += self._due_in(queue, grace)
        moments += [int(one.claims[0][0]) + one.rate_ms for one in store.throttles.values() if one.claims]
        if store.unique_ends:
            moments.append(int(store.unique_ends[self._below(len(store.unique_ends))][0]))
        if store.keeping:
            moments.append(int(store.keeping[self._below(len(store.keeping))][0]))
        if store.completed:
            kept = config.value(store, "jobs-history")
            moments.append(int(store.completed[0][0]) + kept)
        if store.workers:
            seen = pick(self._chooser, list(store.workers.values())).seen_at
            if seen is not None:
                moments += (seen + 1000, seen + config.value(store, "max-worker-age"))
        ahead = [moment for moment in moments if moment > now] or moments
        return pick(self._chooser, ahead) + (0, 0, 0, -1, 1)[self._below(5)]

    def _due_in(self, queue: Queue, grace: int) -> list[int]:
        """The moments at which something in a queue falls due, or some of them."""
        moments: list[int] = []
        if queue.scheduled:
            moments.append(int(queue.scheduled[0][0]))
        moments += (until for until in queue.pauses.values() if until)
        if queue.expires:
            last = int(queue.expires[self._below(len(queue.expires))][0])
            moments += (last, last + 1)
        if queue.ends:
            moment = pick(self._chooser, sorted(queue.ends.values()))
            moments += (moment,) if moment else ()
        if queue.recur:
            first = queue.recur[self._below(len(queue.recur))][0]
            moments += [int(first)] if first < NO_TIME else []
        moments += [entry.moment for entry in queue.parked.values() if 0 < entry.moment < NEVER]
        if queue.locks and (lapse := queue.locks[self._below(len(queue.locks))][0]) > 0:
            moments += (int(lapse), *3 * (int(lapse) + grace,))
        return moments

    # ---- operations

    def _operation(self) -> Operation:
        below = self._below
        luck = below(100)
        if luck >= 100 - RESEND_PERCENT and self._past:
            return self._past[-1 - below(min(len(self._past), 12))]
        name = self._draws[bisect_right(self._limits, below(self._limits[-1]))]
        self._aimed = below(100) < AIM[name]
        if self._aimed:
            name = self._possible(name)
        op = _BUILDERS[name](self)
        self._wanted = ""
        if luck >= 100 - RESEND_PERCENT - HOSTILE_PERCENT:
            return self._with_bad_argument(op)
        return op

    def _possible(self, name: str) -> str:
        """Return the operation if the state has something for it to work on, else an operation that leads there."""
        states = {job.state for job in self._store.jobs.values()}
        while (need := NEEDS.get(name)) is not None:
            wanted, enabler = need
            if wanted in states or (name in PRESENT and PRESENT[name](self._store)):
                break
            self._wanted = wanted
            name = enabler
        return name

    def _with_bad_argument(self, op: Operation) -> Operation:
        """Copy an operation with one bad argument."""
        arguments = op.spec.arguments
        if not arguments:
            return op
        argument = pick(self._chooser, arguments)
        value: Any
        if type(argument.kind) is OperationsKind and self._below(4):
            inner = list(getattr(op, argument.name))
            at = self._below(len(inner))
            inner[at] = self._with_bad_argument(inner[at])
            value = tuple(inner)
        else:
            value = pick(self._chooser, self._hostile(argument.kind))
        return _with(op, argument.name, value)

    # ---- arguments

    def _jid(self) -> str:
        return pick(self._chooser, self._names.jids)

    def _in(self, *states: str) -> str:
        """Choose a job id, aimed at jobs in these states."""
        if self._aimed:
            found = [job.jid for job in self._store.jobs.values() if job.state in states]
            if found:
                return found[self._below(len(found))]
        return self._jid()

    def _any(self) -> str:
        """Choose a job id, aimed at jobs that exist."""
        if self._aimed and self._store.jobs:
            return pick(self._chooser, list(self._store.jobs))
        return "nobody" if self._below(3) == 2 else self._jid()

    def _lease(self) -> tuple[str, int]:
        """Choose a job and the token of its lease; or an old token, a wrong one, another job's."""
        jobs: list[Job] = list(self._store.jobs.values())
        leased = [job for job in jobs if job.state == "running"]
        if self._aimed and leased:
            job = leased[self._below(len(leased))]
            return job.jid, job.token
        if not jobs:
            return self._jid(), self._below(3)
        job = pick(self._chooser, jobs)
        way = self._below(8)
        if way < 4:
            return job.jid, job.token
        if way < 6:
            return job.jid, pick(self._chooser, jobs).token
        return (job.jid, max(job.token - 1, 0)) if way == 6 else (self._jid(), job.token + 1)

    def _queue(self) -> str:
        """Choose a queue, aimed at queues with jobs."""
        if self._aimed:
            found = [job.queue for job in self._store.jobs.values()]
            if found:
                return found[self._below(len(found))]
        return pick(self._chooser, self._names.queues)

    def _queue_with(self, place: str) -> str:
        """Choose a queue, aimed at queues where this collection is not empty."""
        return self._queue_where(attrgetter(place))

    def _queue_where(self, fits: Callable[[Queue], object]) -> str:
        """Choose a queue, aimed at queues that fit."""
        if self._aimed:
            found = [name for name, queue in self._store.queues.items() if fits(queue)]
            if found:
                return found[self._below(len(found))]
        return pick(self._chooser, self._names.queues)

    def _worker(self) -> str:
        return pick(self._chooser, self._names.workers)

    def _request(self) -> str:
        way = self._below(8)
        if way < 4:
            return ""
        if way < 7:
            self._fresh += 1
            return f"n{self._fresh}"
        return REQUEST_IDS[self._below(2)]

    def _several(self, one: Callable[[], str], most: int = 3) -> tuple[str, ...]:
        return tuple(one() for _ in range(1 + self._below(most)))

    def _maybe(self, options: tuple[Any, ...]) -> Any:
        """Choose None or one of several options."""
        return None if self._below(2) == 0 else pick(self._chooser, options)

    def _tags(self) -> tuple[str, ...]:
        return self._several(lambda: pick(self._chooser, self._names.tags))

    def _depends(self) -> tuple[str, ...] | None:
        way = self._below(10)
        if way < 5:
            return None
        if way == 5:
            return ()
        return self._several(self._edge, 2)

    def _edge(self) -> str:
        """Choose a dependency: a plain job id half of the time, else an id with a policy and perhaps a name; or a
        request, if there are any.
        """
        if self._store.requested and not self._below(4):
            policy = self._maybe(POLICIES)
            return Edge.to_request(self._requested("open", "closed", "canceling"), policy or "block").text
        return self._kind_of_edge(self._in("failed") if self._below(4) == 1 else self._any())

    def _kind_of_edge(self, jid: str) -> str:
        if self._below(2):
            return jid
        named = (f" {pick(self._chooser, EDGE_NAMES)}") if self._below(2) else ""
        return f"{jid} {pick(self._chooser, POLICIES)}{named}"

    def _group(self) -> str:
        return pick(self._chooser, self._names.groups)

    def _page(self) -> tuple[int, int]:
        return pick(self._chooser, OFFSETS), pick(self._chooser, COUNTS)

    def _short_page(self) -> tuple[int, int]:
        """Choose a page of a list that seldom has more than one entry."""
        return (0, 0, 0, 0, 0, 0, 1)[self._below(7)], pick(self._chooser, COUNTS)

    # ---- one builder for each operation

    def _put_one(self, jid: str, depends: tuple[str, ...] | None, request: str) -> ops.Put:
        choose = self._chooser
        delay = pick(choose, DELAYS)
        if self._throttling and self._below(4):
            delay, depends = 0, None
        if self._wanted:
            depends = (depends or (self._edge(),)) if self._wanted == "depends" else None
            delay = delay or 60_000 if self._wanted == "scheduled" else 0
        return ops.Put(
            pick(choose, self._names.queues),
            jid,
            pick(choose, self._names.klasses),
            pick(choose, DATA),
            self._maybe(PRIORITIES),
            retries=self._maybe((0, 0, 1, 1, 2, 5, 1_000_000)),
            tags=self._maybe((self._tags(), ())),
            depends=depends,
            request=request,
            **self._timing(delay),
            **self._run_options(),
            **self._retention_options(),
            **self._retry_options(),
            **self._throttle_options(),
            **self._fair_options(),
            **self._unique_options(),
        )

    def _timing(self, delay: int) -> dict[str, Any]:
        """Choose when a job is ready: after its delay; for two of the delays, at a moment to come or past."""
        if self._wanted or delay not in (1, 500):
            return {"delay_ms": delay}
        return {"at": self._moment(self._now + delay if delay == 500 else self._now - 1000)}

    def _run_options(self) -> dict[str, Any]:
        """Choose the options of a put about running the job; most puts have none."""
        way = self._below(20)
        if way > 17:
            ttl = {"ttl_ms": pick(self._chooser, LIVES)} if self._below(2) else {}
            return {"dead_queue": pick(self._chooser, self._names.queues), **ttl}
        if way < 8:
            return {}
        if way > 15:
            return {"ttl_ms": pick(self._chooser, LIVES)}
        if way > 11:
            key = pick(self._chooser, self._names.klasses[:1] * 2 + self._names.klasses)
            return {"ordered": key} if way > 12 else {"ordered": key, "ttl_ms": pick(self._chooser, LIVES)}
        if way == 8:
            return {"lifo": (True, True, False)[self._below(3)]}
        if way == 9:
            return {"lease_ms": pick(self._chooser, LEASES)}
        if way == 10:
            return {"timeout_ms": pick(self._chooser, LEASES)}
        return {"lifo": True, "lease_ms": pick(self._chooser, LEASES), "timeout_ms": pick(self._chooser, LEASES)}

    def _retry_options(self) -> dict[str, Any]:
        """Choose a limit of lapses, or a backoff; few puts have them."""
        way = self._below(10)
        if way == 9:
            return {"max_lapses": self._below(3)}
        if way != 8:
            return {}
        most = {"retry_delay_max_ms": pick(self._chooser, LEASES)} if self._below(3) == 2 else {}
        return {"retry_delay_ms": pick(self._chooser, LEASES), **most}

    def _retention_options(self) -> dict[str, Any]:
        """Choose the options of a put about the retention of the ended job; few puts have them."""
        way = self._below(20)
        kept = {"keep_complete_ms": pick(self._chooser, KEEPS)} if way in (16, 17, 19) else {}
        newest = {"keep_newest": 1 + self._below(2)} if way in (13, 14, 16) else {}
        return kept | newest | ({"keep_failed_ms": pick(self._chooser, KEEPS)} if way in (18, 19) else {})

    def _throttle_options(self) -> dict[str, Any]:
        """Choose the throttles and the cost of a job: some histories throttle most jobs, the others none."""
        if not self._throttling or self._below(8) == 7:
            return {}
        named = self._names.throttles[: 1 + self._below(2)] if self._below(4) else self._names.throttles[1:]
        return {"throttles": named, "cost": pick(self._chooser, COSTS)}

    def _fair_options(self) -> dict[str, Any]:
        """Choose a fair key and perhaps a weight; few puts have them, but most in some histories with fair queues."""
        if not self._fair or not self._below(4):
            return {}
        weight = {"fair_weight": 1 + 2 * self._below(2)} if self._below(3) == 2 else {}
        return {"fair_key": pick(self._chooser, self._names.klasses), **weight} if self._below(5) else weight

    def _unique_options(self) -> dict[str, Any]:
        """Choose a unique key and its options, mostly those that its mode needs; few puts have one."""
        if self._below(5):
            return {}
        mode = pick(self._chooser, UNIQUE_MODES)
        found: dict[str, Any] = {"unique": pick(self._chooser, self._names.jids[:2]), "unique_mode": mode}
        if mode == "window" or (mode != "again" and self._below(4) == 0):
            found["unique_ms"] = pick(self._chooser, LEASES)
        if self._below(3 if mode == "debounce" else 40) == 0:
            found["unique_max_ms"] = pick(self._chooser, LEASES)
        return found

    def _made_jid(self) -> str:
        """Choose an id that a job made by the engine may get."""
        subscriptions = list(self._store.subscriptions)
        return f"{pick(self._chooser, subscriptions)}:{self._store.seq + 2}" if subscriptions else self._jid()

    def put(self) -> Operation:
        recurring = [one for one in self._store.schedules.values() if self._below(4) == 1]
        jid = f"{recurring[0].jid}-{recurring[0].runs + self._below(2)}" if recurring else self._jid()
        if not self._below(8):
            jid = self._made_jid()
        return self._put_one(jid, self._depends(), self._request())

    def put_many(self) -> Operation:
        return ops.PutMany(self._puts(), self._request())

    def put_new(self) -> Operation:
        return ops.PutNew(self._puts(), self._request())

    def _puts(self) -> tuple[ops.Put, ...]:
        jids = [self._jid() for _ in range(1 + self._below(4))]
        if self._aimed:
            jids = list(dict.fromkeys(jids))
        jobs = []
        for at, jid in enumerate(jids):
            others = jids[at + 1 :] if self._aimed else jids
            inside = tuple(self._kind_of_edge(other) for other in others if self._below(2))
            depends = inside or (self._depends() if self._below(2) else None)
            jobs.append(self._put_one(jid, depends, ""))
        return tuple(jobs)

    def _as_qless(self) -> bool:
        """Whether a call is to follow the rules of qless."""
        return self._qless and self._below(2) == 1

    def pop(self) -> Operation:
        count = pick(self._chooser, COUNTS)
        wait = self._below(3) == 1
        queue, worker, request, qless = self._poppable(), self._worker(), self._request(), self._as_qless()
        tries = self._maybe((0, 1, 2, 5)) if qless else None
        return ops.Pop(queue, worker, count, wait, request, qless, tries)

    def pop_any(self) -> Operation:
        names = [pick(self._chooser, self._names.queues) for _ in range(self._below(3))]
        names.insert(self._below(len(names) + 1), self._poppable())
        count = pick(self._chooser, COUNTS)
        return ops.PopAny(tuple(names), self._worker(), count, self._below(3) == 1, self._request())

    def _poppable(self) -> str:
        """Choose a queue, aimed at queues with a job that a pop would lease."""
        now, grace = self._now, config.value(self._store, "grace-period")

        def gives(queue: Queue) -> object:
            return not any(until == 0 or until > now for until in queue.pauses.values()) and (
                queue.ready
                or (queue.scheduled and queue.scheduled[0][0] <= now)
                or (queue.locks and queue.locks[0][0] <= now - grace)
                or (queue.recur and queue.recur[0][0] <= now)
            )

        return self._queue_where(gives)

    def peek(self) -> Operation:
        return ops.Peek(self._queue_with("ready"), pick(self._chooser, COUNTS))

    def _next(self) -> tuple[str | None, int, tuple[str, ...]]:
        way = self._below(8)
        if way < 4:
            return None, 0, ()
        queue = pick(self._chooser, self._names.queues)
        if way < 6:
            return queue, pick(self._chooser, DELAYS), ()
        if way == 6:
            return queue, pick(self._chooser, DELAYS), self._depends() or ()
        return (None if self._below(2) else queue), 0, self._depends() or ()

    def complete(self) -> Operation:
        next, delay, depends = self._next()
        data = self._maybe(DATA)
        return ops.Complete(*self._lease(), pick(self._chooser, DATA), data, next, delay, depends)

    def complete_many(self) -> Operation:
        leases = dict([self._lease() for _ in range(1 + self._below(3))])
        jobs = [ops.Complete(jid, token, pick(self._chooser, DATA)) for jid, token in leases.items()]
        if not self._aimed and self._below(3) == 0:
            jobs.append(jobs[0])
        if not self._aimed and self._below(4) == 0:
            next, delay, depends = self._next()
            jobs[0] = replace(jobs[0], next=next, delay_ms=delay, depends=depends)
        return ops.CompleteMany(tuple(jobs))

    def complete_and_pop(self) -> Operation:
        jid, token = self._lease()
        job = self._store.jobs.get(jid)
        owner = job.worker if job is not None and job.worker and self._below(3) else ""
        next, delay, depends = self._next()
        return ops.CompleteAndPop(
            jid,
            token,
            self._poppable(),
            owner or self._worker(),
            pick(self._chooser, COUNTS),
            self._below(3) == 1,
            pick(self._chooser, DATA),
            self._maybe(DATA),
            next,
            delay,
            depends,
            self._request(),
        )

    def fail(self) -> Operation:
        message = pick(self._chooser, LINES)
        return ops.Fail(*self._lease(), self._group(), message, self._maybe(DATA))

    def retry(self) -> Operation:
        group = self._maybe(self._names.groups)
        delay = pick(self._chooser, DELAYS)
        return ops.Retry(*self._lease(), delay, group, pick(self._chooser, LINES), self._as_qless())

    def release(self) -> Operation:
        delay, data = pick(self._chooser, DELAYS), self._maybe(DATA)
        return ops.Release(*self._lease(), delay, data, () if self._below(3) else self._depends() or ())

    def heartbeat(self) -> Operation:
        return ops.Heartbeat(*self._lease(), self._maybe(DATA))

    def timeout(self) -> Operation:
        jids = self._several(lambda: self._in("running"), 2)
        return ops.Timeout(jids, self._request())

    def replay(self) -> Operation:
        if not self._aimed:
            return ops.Replay(self._any(), self._request())
        jobs = self._store.jobs
        letters = [
            jid
            for jid, job in jobs.items()
            if "origin" in job.options and job.state != "complete" and not job.dependents
            if (of := jobs.get(job.options["origin"])) is None or of.state == "failed"
        ]
        if letters:
            return ops.Replay(pick(self._chooser, letters), self._request())
        mortal = [job for job in jobs.values() if "dead_queue" in job.options]
        for job in mortal:  # what leads there
            if job.state == "running":
                return ops.Fail(job.jid, job.token, self._group(), "")
            if job.state not in ("complete", "failed"):
                return ops.Revoke((job.jid,), self._request())
        queue, dead = self._queue(), pick(self._chooser, self._names.queues)
        return ops.Put(queue, self._jid(), self._names.klasses[0], "", dead_queue=dead)

    def revoke(self) -> Operation:
        states = pick(self._chooser, (("running",), ("running",), ("waiting", "scheduled", "depends", "stalled")))
        return ops.Revoke(self._several(lambda: self._in(*states), 2), self._request())

    def update(self) -> Operation:
        return ops.Update(self._any(), pick(self._chooser, DATA), self._request())

    def priority(self) -> Operation:
        return ops.Priority(self._any(), pick(self._chooser, PRIORITIES), self._request(), self._as_qless())

    def delay(self) -> Operation:
        jid = self._in("waiting", "scheduled", "depends", "throttled")
        return ops.Delay(jid, pick(self._chooser, DELAYS), self._request())

    def promote(self) -> Operation:
        return ops.Promote(self._in("scheduled"), self._request())

    def log(self) -> Operation:
        return ops.Log(self._any(), pick(self._chooser, LINES), self._request())

    def progress(self) -> Operation:
        return ops.Progress(*self._lease(), pick(self._chooser, LINES), self._request())

    def cancel(self) -> Operation:
        jids = self._several(self._any)
        way = self._below(3)
        return ops.Cancel(jids, way == 1, way == 2 and len(jids) == 1, self._request())

    def drain(self) -> Operation:
        place = ("ready", "scheduled", "depends", "throttled")[self._below(4)]
        return ops.Drain(self._queue_with(place), pick(self._chooser, COUNTS), self._request())

    def depends_on(self) -> Operation:
        jid = self._in("depends")
        return ops.DependsOn(jid, self._several(self._edge, 2), self._request())

    def depends_off(self) -> Operation:
        jid = self._in("depends")
        job = self._store.jobs.get(jid)
        known = tuple(sorted(job.dependencies)) if job is not None else ()
        way = self._below(4)
        if way == 0:
            return ops.DependsOff(jid, known[: 1 + self._below(2)], False, self._request())
        if way == 1:
            return ops.DependsOff(jid, (), True, self._request())
        one = (lambda: pick(self._chooser, known)) if known else self._jid
        return ops.DependsOff(jid, self._several(one, 2), self._below(8) == 1, self._request())

    def results(self) -> Operation:
        known = tuple(self._store.results) if self._aimed else ()
        jid = pick(self._chooser, known or self._names.jids)
        return ops.Results(jid, *self._short_page()) if self._below(4) == 0 else ops.Results(jid)

    def _key(self) -> str:
        uniques = self._store.uniques
        if self._aimed and uniques:
            return pick(self._chooser, [key for key, one in uniques.items() if one.next] or list(uniques))
        return pick(self._chooser, self._names.jids[:2])

    def unique_get(self) -> Operation:
        """Choose a key that a job holds, or, if not aimed, perhaps one that may be free."""
        held = tuple(self._store.uniques)
        return ops.UniqueGet(pick(self._chooser, held if self._aimed and held else (*held, *self._names.jids[:2])))

    def unique_release(self) -> Operation:
        return ops.UniqueRelease(self._key(), self._request())

    def tag_add(self) -> Operation:
        return ops.TagAdd(self._any(), self._tags(), self._request())

    def tag_remove(self) -> Operation:
        if self._aimed:
            found = [job for job in self._store.jobs.values() if job.tags]
            if found:
                job = pick(self._chooser, found)
                return ops.TagRemove(job.jid, tuple(job.tags)[:1], self._request())
        return ops.TagRemove(self._any(), self._tags(), self._request())

    def tagged(self) -> Operation:
        known = tuple(self._store.tags) if self._aimed else ()
        return ops.Tagged(pick(self._chooser, known or self._names.tags), *self._page())

    def top_tags(self) -> Operation:
        return ops.TopTags(*self._page())

    def track(self) -> Operation:
        if self._aimed:
            found = [jid for jid in self._store.jobs if jid not in self._store.tracked]
            if found:
                return ops.Track(pick(self._chooser, found), self._request())
        return ops.Track(self._jid(), self._request())

    def untrack(self) -> Operation:
        known = tuple(self._store.tracked) if self._aimed else ()
        return ops.Untrack(pick(self._chooser, known or self._names.jids), self._request())

    def tracked(self) -> Operation:
        return ops.Tracked(*self._page())

    def failed_groups(self) -> Operation:
        return ops.FailedGroups(*self._page())

    def _failed_group(self) -> str:
        known = sorted(self._store.groups, key=lambda name: -len(self._store.groups[name])) if self._aimed else ()
        return known[self._below(len(known)) if self._below(2) else 0] if known else self._group()

    def failed(self) -> Operation:
        return ops.Failed(self._failed_group(), *self._page())

    def _requested(self, *states: str) -> str:
        """Choose a request, aimed at requests in these states, half of the time at one that jobs wait for."""
        known = [one for one in self._store.requested.values() if one.state in states] if self._aimed else []
        awaited = [one for one in known if one.dependents]
        if awaited and self._below(2):
            known = awaited
        return pick(self._chooser, [one.id for one in known] or REQUEST_NAMES)

    def _open_arguments(self) -> tuple[str, str, int, int, dict[str, Any]]:
        """Choose the arguments to open a request: a new one, one as it was opened before, or nearly so; and how it may
        end by itself.
        """
        id = pick(self._chooser, REQUEST_NAMES)
        known = self._store.requested.get(id)
        queue, limit, priority = pick(self._chooser, self._names.queues), pick(self._chooser, WIDTHS), 0
        ends: dict[str, Any] = {}
        if not self._below(3):
            ends["deadline_ms"] = pick(self._chooser, (None, 1, 1000, 60_000))
            ends["fail_fast"] = self._below(3) > 0
            ends["lease_ms"] = pick(self._chooser, (None, None, 1000, 5000))
        ends["data"] = pick(self._chooser, ("", pick(self._chooser, DATA)))
        if not self._below(3):
            ends["keep_places"] = True
        if known is not None and self._below(4):
            queue, limit, priority = known.queue, known.first_limit, known.first_priority
            deadline_ms = known.deadline_at - known.opened_at if known.deadline_at else None
            ends = {"deadline_ms": deadline_ms, "fail_fast": known.fail_fast, "lease_ms": known.lease_ms or None}
            ends |= {"data": known.data, "keep_places": known.keep_places}
        return id, queue, limit, priority, ends

    def _sub_requests(self, id: str, queue: str) -> tuple[ops.Put, ...]:
        known = self._store.requested.get(id)
        queue = known.queue if known is not None and self._aimed else queue
        numbers = dict.fromkeys(self._below(6) for _ in range(1 + self._below(4)))
        if not self._below(20):
            return (ops.Put(queue, self._any(), "k", ""),)
        puts = [self._put_one(f"{id}:{number}", None, "") for number in numbers]
        return tuple(self._sub_request(put, queue) for put in puts)

    def _sub_request(self, put: ops.Put, queue: str) -> ops.Put:
        """Change a put so that a request accepts it; seldom give it a priority, which is refused."""
        changes: dict[str, Any] = {"queue": queue, **dict.fromkeys(NEVER_IN_A_REQUEST)}
        if not self._below(12):
            changes["depends"] = self._depends()
        if not self._below(30):
            changes["priority"] = 1
        return replace(put, **changes)

    def request_open(self) -> Operation:
        id, queue, limit, priority, ends = self._open_arguments()
        return ops.RequestOpen(id, queue, limit, pick(self._chooser, (priority, priority, 1)), self._request(), **ends)

    def request_add(self) -> Operation:
        id = self._requested("open")
        jobs = self._sub_requests(id, pick(self._chooser, self._names.queues))
        return ops.RequestAdd(id, jobs, self._request())

    def request_touch(self) -> Operation:
        return ops.RequestTouch(self._requested("open"), self._request())

    def request_close(self) -> Operation:
        return ops.RequestClose(self._requested("open"), self._request())

    def request_put(self) -> Operation:
        id, queue, limit, priority, ends = self._open_arguments()
        ends.pop("lease_ms", None)
        return ops.RequestPut(id, queue, limit, self._sub_requests(id, queue), priority, self._request(), **ends)

    def request_get(self) -> Operation:
        return ops.RequestGet(self._requested("open", "closed", "canceling", "done", "canceled"))

    def request_jobs(self) -> Operation:
        """Choose a request, aimed at one that has sub-requests."""
        known = tuple(one.id for one in self._store.requested.values() if one.order)
        chosen = pick(self._chooser, known if self._aimed and known else (*known, *REQUEST_NAMES))
        return ops.RequestJobs(chosen, *self._short_page())

    def requests(self) -> Operation:
        states = [state for state, found in self._store.request_states.items() if found] if self._aimed else ()
        state = pick(self._chooser, states or ("open", "closed", "canceling", "done", "canceled"))
        return ops.Requests(state, *self._short_page())

    def request_tune(self) -> Operation:
        id = self._requested("open", "closed")
        return ops.RequestTune(id, self._maybe(PRIORITIES), self._maybe(WIDTHS), self._request())

    def request_cancel(self) -> Operation:
        return ops.RequestCancel(self._requested("open", "closed", "canceling"), self._request())

    def request_forget(self) -> Operation:
        return ops.RequestForget(self._requested("done", "canceled"), self._request(), self._below(2) > 0)

    def recur(self) -> Operation:
        choose = self._chooser
        interval, backlog = pick(choose, PACES)
        paced = {"interval_ms": interval, "offset_ms": pick(choose, DELAYS)}
        return ops.Recur(
            pick(choose, self._names.queues),
            self._jid(),
            pick(choose, self._names.klasses),
            pick(choose, DATA),
            priority=pick(choose, PRIORITIES),
            retries=pick(choose, (0, 1, 5)),
            tags=pick(choose, ((), (), self._tags())),
            backlog=backlog,
            request=self._request(),
            throttles=self._throttle_options().get("throttles", ()),
            **(paced | self._schedule_options(interval) | self._fair_options()),
        )

    def _schedule_options(self, interval: int) -> dict[str, Any]:
        """Choose further options of a recurring job; half of them have none and recur for ever at an interval."""
        choose, below = self._chooser, self._below
        if below(2):
            return {}
        limit, runs = pick(choose, ((0, 0), (0, 0), (0, 7), (1, 0), (2, 0)))
        more: dict[str, Any] = {
            "limit": limit,
            "runs": runs,
            "missed": pick(choose, ("all", "one", "none")),
            "catchup_ms": pick(choose, (0, 1000, 60_000)),
            "overlap": pick(choose, ("allow", "skip", "skip")),
            "restart": below(4) == 1,
        }
        if below(3) == 1:
            more["start_at"] = self._moment(self._now + pick(choose, (-2500, 1, 1000, 60_000)))
        if below(3) == 1:
            more["end_at"] = self._moment(self._now + pick(choose, (0, 1000, 60_000, 5 * interval, -1)))
        kind = pick(choose, ("interval", "cron", "cron", "after"))
        if kind == "cron":
            more |= {"cron": pick(choose, ("0 9 * * * UTC", "é\n")), "interval_ms": 0, "offset_ms": 0}
            more["due_at"] = self._moments(self._now - pick(choose, (1, 1, 2500)))
        return more | {"kind": kind}

    def _moment(self, moment: int) -> int:
        return min(max(moment, 0), TIME_END - 1)

    def _moments(self, after: int) -> tuple[int, ...]:
        """Choose a few moments after one; seldom out of order."""
        steps = [pick(self._chooser, (1, 450, 1000, 1000, 60_000, DAY)) for _ in range(self._below(5))]
        found = [self._moment(after + sum(steps[: at + 1])) for at in range(len(steps))]
        return tuple(found if self._below(12) == 5 else sorted(set(found)))

    def _recurring(self) -> str:
        """Choose a recurring job, aimed at those that exist."""
        known = tuple(self._store.schedules) if self._aimed else ()
        return pick(self._chooser, known or self._names.jids)

    def unrecur(self) -> Operation:
        return ops.Unrecur(self._recurring(), self._request())

    def recur_get(self) -> Operation:
        return ops.RecurGet(self._recurring())

    def recur_update(self) -> Operation:
        interval, backlog = self._maybe(PACES) or (None, self._maybe((1, 2, 3)))
        return ops.RecurUpdate(
            self._recurring(),
            self._maybe(self._names.queues),
            self._maybe(self._names.klasses),
            self._maybe(DATA),
            interval,
            self._maybe(PRIORITIES),
            self._maybe((0, 1, 5)),
            backlog,
            self._request(),
            self._throttle_options().get("throttles"),
            **self._fair_options(),
        )

    def recur_tag(self) -> Operation:
        return ops.RecurTag(self._recurring(), self._tags(), self._request())

    def recur_untag(self) -> Operation:
        if self._aimed:
            found = [one for one in self._store.schedules.values() if one.tags]
            if found:
                one = pick(self._chooser, found)
                return ops.RecurUntag(one.jid, one.tags[: 1 + self._below(2)], self._request())
        return ops.RecurUntag(self._recurring(), self._tags(), self._request())

    def recur_pause(self) -> Operation:
        return ops.RecurPause(self._recurring_where(lambda one: not one.paused), self._request())

    def recur_unpause(self) -> Operation:
        return ops.RecurUnpause(self._recurring_where(attrgetter("paused")), self._request())

    def recur_now(self) -> Operation:
        return ops.RecurNow(self._recurring(), self._request())

    def recur_advance(self) -> Operation:
        jid = self._recurring_where(lambda one: one.kind == "cron")
        one = self._store.schedules.get(jid)
        after = self._moment(one.last_at) if one is not None and (self._aimed or self._below(2)) else self._now
        return ops.RecurAdvance(jid, after, self._moments(after + pick(self._chooser, (0, 0, 0, -1001))))

    def recurring_unset(self) -> Operation:
        return ops.RecurringUnset(pick(self._chooser, DELAYS), pick(self._chooser, COUNTS))

    def _recurring_where(self, fits: Callable[[Schedule], object]) -> str:
        """Choose a recurring job, aimed at those that fit."""
        known = tuple(jid for jid, one in self._store.schedules.items() if self._aimed and fits(one))
        return pick(self._chooser, known or self._names.jids)

    def recurring(self) -> Operation:
        return ops.Recurring(self._queue_with("recur"), *self._short_page())

    def fire(self) -> Operation:
        queue = self._queue_where(lambda q: q.recur and q.recur[0][0] <= self._now)
        return ops.Fire(queue, pick(self._chooser, COUNTS), self._request(), self._as_qless())

    def _set_limits(self, name: str) -> Operation:
        """Set the limits of a throttle: one, two or all three kinds, small enough to be reached."""
        choose, kinds = self._chooser, 1 + self._below(7)
        rate, rate_ms = (
            (pick(choose, (1, 1, 2, 3)), pick(choose, (1000, 60_000, 60_000, 1))) if kinds & 2 else (None, None)
        )
        bucket: tuple[int | None, int | None, int | None] = (None, None, None)
        if kinds & 4:
            bucket = pick(choose, (1, 1, 2, 5, 1_000_000)), pick(choose, (1, 1, 2, 3, 1_000_000)), pick(choose, PERIODS)
        concurrency = pick(choose, (1, 1, 1, 2, 3)) if kinds & 1 else None
        return ops.ThrottleSet(name, concurrency, rate, rate_ms, *bucket, self._request())

    def _limited(self, at: int) -> str:
        """Choose a throttle to be limited, or, in some histories, a family in its place."""
        name = self._names.throttles[at]
        return pick(self._chooser, (name, *self._families)) if self._families else name

    def _throttle(self) -> str:
        """Choose a throttle, or the throttle of a queue; aimed at throttles that exist."""
        known = tuple(self._store.throttles) if self._aimed else ()
        if known and self._below(3):
            return pick(self._chooser, known)
        return OWN + self._queue() if self._below(3) == 2 else pick(self._chooser, self._names.throttles)

    def throttle_set(self) -> Operation:
        name = OWN + self._queue() if self._below(3) == 2 else self._limited(self._below(2))
        op = self._set_limits(name)
        if not self._aimed and self._below(8):
            lost = pick(self._chooser, LIMITS if self._below(2) else LIMITS[1:])
            op = _with(op, lost, None if getattr(op, lost) is not None else 1)
        return op

    def throttle_unset(self) -> Operation:
        return ops.ThrottleUnset(self._throttle(), self._request())

    def throttle_get(self) -> Operation:
        return ops.ThrottleGet(self._throttle())

    def throttles(self) -> Operation:
        return ops.Throttles(*self._short_page())

    def throttles_used(self) -> Operation:
        """Choose a pattern, mostly one that matches, and where to begin: mostly at the first name."""
        names = (*self._store.throttles, *self._names.throttles)
        name = pick(self._chooser, names)
        match = pick(self._chooser, ("*", "*", "*", name[:1] + "*", "*" + name[-1:], *self._families))
        cursor = pick(self._chooser, ("", "", "", "", name[:1], "~"))
        return ops.ThrottlesUsed(match, cursor, pick(self._chooser, COUNTS))

    def why(self) -> Operation:
        return ops.Why(self._any())

    def publish(self) -> Operation:
        subject = pick(self._chooser, SUBJECTS if self._aimed or self._below(3) else BAD_SUBJECTS)
        return ops.Publish(subject, pick(self._chooser, DATA), pick(self._chooser, DELAYS), self._request())

    def subscribe(self) -> Operation:
        choose = self._chooser
        patterns = self._several(lambda: pick(choose, PATTERNS))
        if not self._aimed and self._below(3) == 0:
            patterns += (pick(choose, BAD_PATTERNS),)
        after, since = self._start()
        name = self._jid()
        if not self._below(4) and (left := self._deleted_subscriptions()):
            name, patterns, after, since = pick(choose, left), (">",), 0, None
        return ops.Subscribe(
            name,
            patterns,
            pick(choose, self._names.queues),
            pick(choose, self._names.klasses),
            pick(choose, PRIORITIES),
            pick(choose, DELAYS),
            pick(choose, (0, 1, 5)),
            pick(choose, ((), (), self._tags())),
            **(self._run_options() | self._fair_options()),
            after=after,
            since=since,
            count=pick(choose, (1, 1, 2, MOST)),
            request=self._request(),
        )

    def _deleted_subscriptions(self) -> list[str]:
        """List the names of deleted subscriptions that still have jobs."""
        named = {jid.rpartition(":")[0] for jid, job in self._store.jobs.items() if "subject" in job.options}
        return sorted(named - self._store.subscriptions.keys())

    def _start(self) -> tuple[int | None, int | None]:
        """Choose where a subscription begins: after a message, from a moment on, both, or at the end."""
        way, known = self._below(8), self._store.messages
        if way < 2 or not known.size:
            return None, None
        if way < 5:
            return 0, None
        one = known[self._below(known.size)]
        if way == 5:
            return one.seq - self._below(2), None
        return (one.seq if way == 7 else None), min(one.at + self._below(2), TIME_END - 1)

    def _subscription(self, *, behind: bool = False) -> str:
        """Choose a subscription, aimed at those that exist."""
        known = self._store.subscriptions.values() if self._aimed else ()
        found = [one.name for one in known if one.position is not None or not behind]
        return pick(self._chooser, found or self._names.jids)

    def catch_up(self) -> Operation:
        if self._aimed and all(one.position is None for one in self._store.subscriptions.values()):
            fresh = [name for name in self._names.jids if name not in self._store.subscriptions]
            if fresh and self._store.messages.size > 1:
                queue = pick(self._chooser, self._names.queues)
                return ops.Subscribe(fresh[0], (pick(self._chooser, (">", "a.>")),), queue, "k", after=0, count=1)
            return self.publish()
        return ops.CatchUp(self._subscription(behind=True), pick(self._chooser, COUNTS), self._request())

    def unsubscribe(self) -> Operation:
        return ops.Unsubscribe(self._subscription(), self._request())

    def subscription_get(self) -> Operation:
        return ops.SubscriptionGet(self._subscription())

    def subscriptions(self) -> Operation:
        return ops.Subscriptions(*self._short_page())

    def messages(self) -> Operation:
        known = self._store.messages
        after = known[self._below(known.size)].seq if known.size and self._below(2) else 0
        return ops.Messages(after - self._below(2) if after else 0, pick(self._chooser, COUNTS))

    def trim(self) -> Operation:
        return ops.Trim(pick(self._chooser, COUNTS), self._request())

    def get(self) -> Operation:
        return ops.Get(self._any())

    def multiget(self) -> Operation:
        return ops.Multiget(self._several(self._any))

    # ---- metadata

    def _metadata_key(self) -> tuple[str, str]:
        """Choose a job type and a metadata key, aimed at keys that have a value."""
        known = [(klass, key) for klass, notes in self._store.metadata.items() for key in notes] if self._aimed else []
        if known and self._below(4):
            return pick(self._chooser, known)
        return pick(self._chooser, self._names.klasses), pick(self._chooser, METADATA_KEYS)

    def metadata_get(self) -> Operation:
        return ops.MetadataGet(self._metadata_key()[0])

    def metadata_set(self) -> Operation:
        value = pick(self._chooser, DATA if self._below(3) == 1 else METADATA_NUMBERS)
        return ops.MetadataSet(*self._metadata_key(), value[:1024], self._request())

    def metadata_increment(self) -> Operation:
        return ops.MetadataIncrement(*self._metadata_key(), pick(self._chooser, AMOUNTS), self._request())

    def metadata_unset(self) -> Operation:
        return ops.MetadataUnset(*self._metadata_key(), self._request())

    # ---- searching

    def _filter(self, *states: str) -> dict[str, Any]:
        """Choose a filter, aimed at a job in these states, or in any state if none is given."""
        below = self._below
        fit = [job for job in self._store.jobs.values() if not states or job.state in states] if self._aimed else []
        if not fit:
            names = self._names
            return {
                "queue": self._maybe(names.queues), "klass": self._maybe(names.klasses), "tag": self._maybe(names.tags),
                "group": self._maybe(names.groups), "cursor": "" if below(8) else pick(self._chooser, CURSORS),
            }  # fmt: skip
        job = pick(self._chooser, fit)
        failure = job.failure if job.state == "failed" else None
        return {
            "queue": job.queue if below(3) else None,
            "klass": job.klass if below(4) == 1 else None,
            "tag": next(iter(job.tags)) if job.tags and below(2) else None,
            "group": failure.group if failure is not None and below(2) else None,
            "cursor": self._cursor(),
        }

    def _cursor(self) -> str:
        """Choose the cursor of a search: mostly the beginning."""
        if self._below(8):
            return ""
        store, choose = self._store, self._chooser
        jobs = list(store.jobs.values())
        if not jobs or self._below(3) == 1:
            return pick(choose, CURSORS)
        job = pick(choose, jobs)
        group = job.failure.group if job.failure is not None else "g"
        return pick(choose, (
            f"ready {job.priority} {job.ready_at} {job.seq - 1}", f"scheduled {job.ready_at} {job.seq}",
            f"locks {job.expires_at} {job.seq - 1}", f"completed {job.ended_at} {job.seq - 1}", f"tag {job.seq}",
            f"held {job.seq - 1}", f"group {job.ended_at} {job.seq} {group}", f"depends {job.put_at} {job.seq}",
        ))  # fmt: skip

    def search(self) -> Operation:
        found = self._filter()
        state = self._maybe(tuple(STATES)) if self._below(2) else None
        worker = self._worker() if self._below(8) == 1 else None
        found |= self._parts() if self._below(4) == 1 else {}
        return ops.Search(**found, state=state, worker=worker, count=pick(self._chooser, COUNTS))

    def _parts(self) -> dict[str, Any]:
        """Choose parts of names and of data, mostly those of a job."""
        jobs, choose = list(self._store.jobs.values()), self._chooser
        job = pick(choose, jobs) if jobs else None
        klass, jid, data = (job.klass, job.jid, job.data) if job is not None else ("k", "j", "{}")
        return {
            "klass_like": pick(choose, (None, "*", klass, klass[:1] + "*", "*" + klass[-1:], f"{klass[:1]}*{klass}")),
            "jid_like": pick(choose, (None, "*", jid, f"*{jid[1:]}*", f"{jid[:1]}*{jid[-1:]}", "**" + jid)),
            "text": pick(choose, (None, data[:8].strip() or "x", data[-2:].strip() or "}", "nowhere")),
        }

    def cancel_many(self) -> Operation:
        found = self._filter("waiting", "scheduled", "running", "stalled", "failed")
        found["state"] = self._maybe(tuple(STATES)) if self._below(4) == 1 else None
        found["worker"] = self._worker() if self._below(8) == 1 else None
        count, preview = pick(self._chooser, COUNTS), self._below(6) == 1
        return ops.CancelMany(**found, count=count, preview=preview, request=self._request())

    def clean(self) -> Operation:
        ended = [job.state for job in self._store.jobs.values() if job.state in ("complete", "failed")]
        state = pick(self._chooser, ended or ("complete", "failed"))
        age = pick(self._chooser, DELAYS) if self._below(2) else 0
        count, preview = pick(self._chooser, COUNTS), self._below(6) == 1
        return ops.Clean(state, age, **self._filter(state), count=count, preview=preview, request=self._request())

    def obliterate(self) -> Operation:
        queue = self._queue_where(lambda q: q.first_seen is not None)
        force, cursor = self._below(2) == 1, "" if self._below(6) else self._cursor()
        return ops.Obliterate(queue, force, cursor, pick(self._chooser, COUNTS), self._request())

    def retry_many(self) -> Operation:
        if self._aimed and self._below(2):  # a group of several is worth more, and seldom comes about
            alone = [name for name, jobs in self._store.groups.items() if len(jobs) == 1]
            if alone and any(job.state == "running" for job in self._store.jobs.values()):
                return ops.Fail(*self._lease(), alone[0], pick(self._chooser, LINES))
        count, preview = pick(self._chooser, COUNTS), self._below(6) == 1
        to = self._maybe(self._names.queues)
        given = self._filter("failed") if self._below(3) else {"group": self._failed_group()}
        jids = self._several(self._failed_jid, 4) if self._below(4) == 1 else None
        if jids is not None and self._below(6):
            given = {}
        return ops.RetryMany(**given, count=count, preview=preview, jids=jids, to=to, request=self._request())

    def _failed_jid(self) -> str:
        """Choose a job id, aimed at failed jobs."""
        failed = [job.jid for job in self._store.jobs.values() if job.state == "failed"] if self._aimed else []
        return pick(self._chooser, failed) if failed and self._below(5) else self._jid()

    def waiting(self) -> Operation:
        return ops.Waiting(self._queue_with("ready"), *self._page())

    def scheduled(self) -> Operation:
        if self._aimed and not any(q.scheduled and q.scheduled[-1][0] > self._now for q in self._store.queues.values()):
            self._wanted = "scheduled"
            return self.put()
        queue = self._queue_where(lambda q: q.scheduled and q.scheduled[-1][0] > self._now)
        return ops.Scheduled(queue, *self._short_page())

    def depending(self) -> Operation:
        return ops.Depending(self._queue_with("depends"), *self._page())

    def throttled(self) -> Operation:
        return ops.Throttled(self._queue_with("throttled"), *self._page())

    def running(self) -> Operation:
        if self._aimed and not any(q.locks and q.locks[-1][0] > self._now for q in self._store.queues.values()):
            return self.heartbeat()
        queue = self._queue_where(lambda q: q.locks and q.locks[-1][0] > self._now)
        return ops.Running(queue, *self._short_page())

    def stalled(self) -> Operation:
        queue = self._queue_where(lambda q: q.locks and q.locks[0][0] <= self._now)
        return ops.Stalled(queue, *self._short_page())

    def completed(self) -> Operation:
        return ops.Completed(*self._page())

    def queues(self) -> Operation:
        return ops.Queues(pick(self._chooser, (0, 0, 1, 2, 3)), pick(self._chooser, COUNTS))

    def queue(self) -> Operation:
        return ops.Queue(self._queue() if self._aimed or self._below(2) else "nowhere")

    def length(self) -> Operation:
        return ops.Length(self._queue())

    def workers(self) -> Operation:
        return ops.Workers(*self._page())

    def worker(self) -> Operation:
        if self._aimed:
            found = [name for name, worker in self._store.workers.items() if worker.held]
            if found:
                return ops.Worker(pick(self._chooser, found))
        return ops.Worker(self._worker())

    def stats(self) -> Operation:
        if self._aimed and self._store.days:
            day, queue = pick(self._chooser, list(self._store.days))
            found = self._store.days[day, queue]
            tag, worker = self._maybe((*found.tags, None)), self._maybe((*found.workers, None))
            return ops.Stats(queue, day + self._below(2) * (DAY - 1), tag, None if tag else worker)
        days = pick(self._chooser, (0, 1, -1, -2, -8, -31))
        at = self._maybe((min(max(self._now + days * DAY, 0), TIME_END - 1),))
        tag, worker = self._maybe((None, *self._names.tags)), self._maybe((None, None, None, self._worker()))
        return ops.Stats(self._queue(), at, tag, worker)

    def metrics(self) -> Operation:
        """Read the metrics of a minute with events, or of any period."""
        kept = [
            (day + minute * 60_000, queue) for (day, queue), one in self._store.days.items() for minute in one.minutes
        ]
        count = pick(self._chooser, COUNTS)
        if self._aimed and kept:
            at, queue = pick(self._chooser, kept)
            return ops.Metrics(queue, at + self._below(min(count, 4)) * 60_000 + self._below(2) * 59_999, count)
        span = pick(self._chooser, (0, 60_000, -60_000, -DAY, -2 * DAY, -31 * DAY))
        return ops.Metrics(self._queue(), self._maybe((min(max(self._now + span, 0), TIME_END - 1),)), count)

    def events(self) -> Operation:
        seq = self._store.seq
        after = pick(self._chooser, (0, max(seq - 1, 0), max(seq - 3, 0), seq, seq + 1, seq // 2))
        known = [self._store.epoch, *(epoch + more for _, epoch in self._store.epochs for more in (0, 0, 1))]
        return ops.Events(after, pick(self._chooser, COUNTS), self._maybe(tuple(known)))

    def newest(self) -> Operation:
        return ops.Newest()

    def journal(self) -> Operation:
        last = self._store.journaled
        after = pick(self._chooser, (0, max(last - 1, 0), max(last - 3, 0), *(() if self._aimed else (last, last + 2))))
        epochs = [self._store.epoch, *(one[-1] + more for one in self._store.recorded for more in (0, 0, 1))]
        return ops.Journal(after, pick(self._chooser, COUNTS), self._maybe(tuple(epochs[:9])))

    def pause(self) -> Operation:
        queue = self._queue_where(lambda q: not q.pauses)
        names = (queue, *self._several(self._queue, 2)) if self._below(4) == 3 else (queue,)
        return ops.Pause(names, pick(self._chooser, REASONS), pick(self._chooser, SPANS), self._request())

    def unpause(self) -> Operation:
        one = self._queue_where(attrgetter("pauses"))
        names = (one, *self._several(self._queue, 2)) if self._below(4) == 3 else (one,)
        known = [reason for name in names for reason in queues.of(self._store, name).pauses]
        reason = self._maybe(tuple(known) if known and self._aimed else REASONS)
        return ops.Unpause(names, reason, self._request())

    def forget(self) -> Operation:
        if self._aimed:
            alone = [q.recur[0][2] for q in self._store.queues.values() if q.recur and not length(q)]
            if alone:  # what recurs there has to go first
                return ops.Unrecur(pick(self._chooser, alone), self._request())
            if all(map(length, self._store.queues.values())):
                return self.drain()
            empty = self._queue_where(lambda q: not length(q) and q.first_seen is not None)
            return ops.Forget((empty,), self._request())
        return ops.Forget(self._several(lambda: pick(self._chooser, self._names.queues), 2), self._request())

    def deregister(self) -> Operation:
        known = tuple(self._store.workers) if self._aimed else ()
        names = self._several(lambda: pick(self._chooser, known or self._names.workers), 2)
        return ops.Deregister(names, self._request())

    def config(self) -> Operation:
        return ops.Config()

    def _option(self) -> str:
        """Choose an option of the configuration; if not aimed, mostly one that does not exist."""
        if not self._aimed and self._below(3):
            return pick(self._chooser, ("heartbeat-", "heartbeats", "histograms-history", "x"))
        known = tuple(self._store.config) if self._aimed and self._below(2) else ()
        return pick(self._chooser, known or OPTIONS)

    def config_get(self) -> Operation:
        return ops.ConfigGet(self._option())

    def config_set(self) -> Operation:
        if self._wanted == "recorded":
            return ops.ConfigSet("journal", 1, self._request())
        if self._aimed:
            return self._setting()
        option = self._option()
        known = settings.OPTIONS.get(option, settings.OPTIONS["heartbeat"])
        edges = (known.high + 1, known.high + 2, known.low - 1 if known.low else known.high + 3, known.high)
        return ops.ConfigSet(option, pick(self._chooser, edges), self._request())

    def config_unset(self) -> Operation:
        return ops.ConfigUnset(self._option(), self._request())

    def begin_epoch(self) -> Operation:
        """Begin an epoch, mostly the next one; the numbers are small, so that tokens can be read."""
        current = self._store.epoch
        return ops.BeginEpoch(max(current + pick(self._chooser, (1, 1, 2) if self._aimed else (0, -1, -1)), 1))


_BUILDERS: dict[str, Callable[[Generator], Operation]] = {name: getattr(Generator, name) for name in CATALOGUE}


def _even(other: dict[str, int] | None = None) -> tuple[tuple[str, ...], list[int]]:
    """Give every operation its usual weight, or the one in `other`."""
    weights = WEIGHTS | (other or {})
    return tuple(CATALOGUE), list(accumulate(weights.get(name, 1) for name in CATALOGUE))


# ---- hostile arguments

_LONG = "x" * ((1 << 20) + 1)
_TYPED: tuple[Any, ...] = (None, 1, 1.5, True, "x", ("x",))


def WIRE_HOSTILE(kind: Kind) -> tuple[Any, ...]:
    """List bad values of a kind that any language can send: numbers, texts and lists of texts."""
    if isinstance(kind, Whole):
        numbers = (kind.low - 1, kind.high + 1, -(10**15), 10**15, 10**30, 2**63)
        return (
            *(number for number in numbers if not kind.accepts(number)),
            "", "x", "1.5", "1e3", "0x10", " 1", "+1", "01", "-0", "inf", "nan", "\u0661",
        )  # fmt: skip
    if isinstance(kind, Flag):
        return ("", "2", "yes", "01")
    if isinstance(kind, Choice):
        return ("", "x", kind.words[0].upper(), kind.words[0] + " ")
    if isinstance(kind, Text):
        return (_LONG if kind.most >= len(_LONG) - 1 else "é" * (kind.most // 2 + 1),)
    if isinstance(kind, Id):
        return (
            "", "a b", "é", "a\x00", "\n", "\x7f", "x" * (kind.most + 1), *("x" + end for end in RESERVED),
        )  # fmt: skip
    if isinstance(kind, Dependency):
        return HOSTILE_EDGES
    if isinstance(kind, Awaited):
        return HOSTILE_AWAITED
    if isinstance(kind, Label):
        return ("", "a b", "{", "x}", "é", "a\x00", "\n", "x" * (kind.most + 1), "x" * 513)
    if isinstance(kind, Name):
        return ("", "\x00", "a\nb", "\x1f", "\x7f", "x" * (kind.most + 1), "é" * (kind.most // 2 + 1))
    if isinstance(kind, ListOf):
        inner = tuple((bad,) for bad in WIRE_HOSTILE(kind.item))
        few = ((),) if kind.least else ()
        return (*few, ("x",) * (MOST + 1), *inner, *(("x", *bad) for bad in inner[:2]))
    return ((),)


def HOSTILE(kind: Kind) -> tuple[Any, ...]:
    """List bad values of a kind, with those that only a Python caller can send."""
    found = _HOSTILE.get(kind)
    if found is None:
        found = _HOSTILE[kind] = (*WIRE_HOSTILE(kind), *_SURROGATES, *_wrong_types(kind))
    return found


_HOSTILE: dict[Kind, tuple[Any, ...]] = {}
HOSTILE_EDGES = (
    "", "a ", "a x", "a fail ", "a  fail", "a fail a b", " fail", "a Fail", "é fail", "a fail é",
    "a fail " + "x" * 65, "x-data fail", "x-results", "x" * 129, "a request ", "a request x", "a request fail b",
    "a! request", " request", "a request request", "x" * 65 + " request fail",
)  # fmt: skip
HOSTILE_AWAITED = (
    "", "a ", "a fail", "a request fail", "a  request", "a! request", " request", "x" * 65 + " request", "x" * 129,
)  # fmt: skip
_SURROGATES = ("\ud800", ("\udfff",))


def _wrong_types(kind: Kind) -> Iterable[Any]:
    return (value for value in _TYPED if not kind.accepts(value))


# ---- how well it aims


class Tally:
    """How often an operation was tried, was refused, and had no effect."""

    __slots__ = ("idle", "refused", "tries")

    def __init__(self) -> None:
        self.tries = self.refused = self.idle = 0

    @property
    def success(self) -> float:
        """The share of tries that changed or showed something."""
        return (self.tries - self.refused - self.idle) / self.tries if self.tries else 0.0


def succeeds(op: Operation, outcome: Any, moved: bool) -> bool:
    """Whether an operation that was not refused changed or showed something."""
    if op.spec.name in ("heartbeat", "request_touch") or moved:
        return True
    if not op.spec.reads or outcome is None or outcome == ():
        return False
    first = outcome[0] if isinstance(outcome, tuple) else outcome
    if op.spec.reply in ("found", "sub_requests"):
        return bool(outcome.jobs)
    if op.spec.reply == "used_throttles":
        return bool(outcome.throttles)
    if op.spec.reply == "stats":
        return bool(outcome.wait.count or outcome.failures)
    if op.spec.reply == "metrics":
        return any(any(minute[1:]) for minute in outcome)
    if op.spec.reply in ("queue", "worker", "tracked", "throttle"):
        return any(part for part in outcome[1 if op.spec.reply in ("queue", "throttle") else 0 :])
    return bool(first)


def census(histories: Iterable[list[Step]]) -> dict[str, Tally]:
    """Count tries, refusals and steps without effect of each operation in histories, on the model."""
    tallies = {name: Tally() for name in CATALOGUE}
    for steps in histories:
        store = Store()
        for now, op in steps:
            before = store.seq
            count(tallies, op, engine.step(store, now, op), store.seq != before)
    return tallies


def count(tallies: dict[str, Tally], op: Operation, outcome: Any, moved: bool) -> None:
    """Count one step."""
    tally = tallies[op.spec.name]
    tally.tries += 1
    if isinstance(outcome, Refusal):
        tally.refused += 1
    elif not succeeds(op, outcome, moved):
        tally.idle += 1

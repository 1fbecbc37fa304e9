"""Draws histories of sensible calls, one call at a time, by looking at what the original has replied.

The same seed gives the same history. A history keeps to what the page of the dialect (docs/qless.md) does not list as a
difference: the constants and the remarks below say what is left out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tools.oracle.compare import Heard
from tools.oracle.sides import Words

START = 1_700_000_000.0
PASSING = (
    (0.001,) * 4 + (0.25, 0.5) + (1.0,) * 6 + (2.0, 5.0, 9.0, 11.0, 31.0, 59.0, 61.0, 75.0, 600.0, 3700.0, 90_000.0)
)
"""How much time passes between two calls. It never stands still: of one moment the original orders jobs by id."""

QUEUES = ("q", "r")
WORKERS = ("w", "v", "u")
JIDS = tuple("abcdefgh")
RECURRING = ("x", "y")
TAGS = ("red", "blue", "green")
GROUPS = ("broken", "lost")
DATA = ("{}", '{"a":1}', '{"a":{"b":[1,2]}}', '"text"', "1")
PRIORITIES = ("0", "0", "1", "2", "5", "-1", "-3", "10")
DELAYS = ("0",) * 6 + ("1", "2", "10", "60")
RETRIES = ("0", "1", "2", "5")
COUNTS = ("1", "1", "1", "2", "3", "10", "0")
INTERVALS = ("1", "5", "10", "60", "3600")
SETTINGS = (
    ("heartbeat", ("10", "60", "120")),
    ("grace-period", ("0", "5", "10")),
    ("q-heartbeat", ("5", "30")),
    ("r-max-concurrency", ("1", "2", "0")),
    ("max-job-history", ("1", "2", "3", "5", "8", "100")),
    ("max-worker-age", ("60", "86400")),
    ("jobs-history-count", ("1", "3", "50000")),
    ("mine", ("anything", "7")),
)


def number(value: float) -> str:
    """Write a moment or a number of seconds as a binding does."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


class Drawer:
    """Draws one history."""

    def __init__(
        self,
        seed: str,
        weights: dict[str, int] | None = None,
        draws: dict[str, Callable[[Drawer], list[str]]] | None = None,
    ) -> None:
        self._random = random.Random(seed)
        self.now = START
        self._state: dict[str, str] = {}
        self._held: dict[str, tuple[str, str]] = {}  # job: its worker and its queue
        self._deleted: dict[str, int] = {}
        self._weights = weights or WEIGHTS
        self._draws = draws or DRAWS

    def step(self) -> Words:
        """Draw the next call."""
        names = list(self._weights)
        command = self._random.choices(names, [self._weights[name] for name in names])[0]
        self.now += self._random.choice(PASSING)
        if round(self.now * 1000) % 1000 == 0:  # runs are due at whole seconds
            self.now += 0.001
        return (command, number(self.now), *self._draws[command](self))

    def hear(self, words: Words, heard: Heard) -> None:
        """Learn from the original's reply which jobs there are, and who holds them."""
        if heard.error is not None:
            return
        name, given = words[0], words[2:]
        if name in ("put", "requeue"):
            self._state[given[2]] = "put"
            self._held.pop(given[2], None)
        elif name == "pop":
            for job in json.loads(heard.reply):
                self._state[job["jid"]] = "running"
                self._held[job["jid"]] = (given[1], given[0])
        elif name == "unrecur":
            self._deleted[given[0][0]] = self._deleted.get(given[0][0], 0) + 1
        elif name in ("complete", "fail", "retry"):
            self._held.pop(given[0], None)
            self._state[given[0]] = name
        elif name in ("timeout", "cancel"):
            for jid in given:
                self._held.pop(jid, None)
                self._state[jid] = name

    # ---- what is drawn

    def of(self, options: Any) -> Any:
        """One of some options."""
        return self._random.choice(options)

    def one_in(self, many: int) -> bool:
        """Whether a die with so many sides shows its first."""
        return self._random.randrange(many) == 0

    def jid(self) -> str:
        """A job's id, mostly one that exists."""
        known = [jid for jid, state in self._state.items() if state != "cancel"]
        return str(self.of(known if known and not self.one_in(6) else JIDS))

    def jids(self, most: int = 3) -> list[str]:
        """A few different ids."""
        return list(dict.fromkeys(self.jid() for _ in range(self._random.randrange(1, most + 1))))

    def held(self) -> tuple[str, str, str]:
        """A job with its worker and queue, mostly one that is held."""
        if self._held and not self.one_in(12):
            jid = str(self.of(list(self._held)))
            worker, queue = self._held[jid]
            return jid, worker if not self.one_in(15) else str(self.of(WORKERS)), queue
        return self.jid(), str(self.of(WORKERS)), str(self.of(QUEUES))

    def tags(self) -> list[str]:
        """A few different tags."""
        return self._random.sample(TAGS, self._random.randrange(1, 3))

    def options(self, *names: str) -> list[str]:
        """Some options of a put."""
        values: dict[str, Callable[[], str]] = {
            "priority": lambda: str(self.of(PRIORITIES)),
            "tags": lambda: json.dumps(self.tags()),
            "retries": lambda: str(self.of(RETRIES)),
            "backlog": lambda: str(self.of(("1", "2", "5"))),
        }
        return [word for name in names if self.one_in(3) for word in (name, values[name]())]

    def depends(self, jid: str) -> list[str]:
        """Dependencies of a job on jobs whose names come before its own, so that there is no cycle."""
        before = [other for other in JIDS if other < jid]
        if not before or not self.one_in(4):
            return []
        return ["depends", json.dumps(self._random.sample(before, min(len(before), self._random.randrange(1, 3))))]

    def delay(self) -> str:
        """A delay; two jobs are never due at the same moment, because the original would order their ids."""
        whole = str(self.of(DELAYS))
        return whole if whole == "0" else f"{whole}.{self._random.randrange(1, 1000):03}"

    def dependencies(self) -> list[str]:
        """The arguments of a change of dependencies: only on jobs whose names come before."""
        jid = self.jid()
        before = [other for other in JIDS if other < jid]
        if self.one_in(3) or not before:
            return [jid, "off", "all"]
        return [jid, str(self.of(("on", "off"))), str(self.of(before))]

    def put(self, jid: str) -> list[str]:
        """The arguments of a put."""
        more = self.options("priority", "tags", "retries") + self.depends(jid)
        worker, queue = str(self.of(WORKERS)), str(self.of(QUEUES))
        return [worker, queue, jid, str(self.of(("k", "l"))), str(self.of(DATA)), self.delay(), *more]

    def complete(self) -> list[str]:
        """The arguments of a completion."""
        jid, worker, queue = self.held()
        found = [jid, worker, queue, str(self.of(DATA))]
        if self.one_in(3):
            found += ["next", str(self.of(QUEUES))]
            found += ["delay", self.delay()] if self.one_in(3) else self.depends(jid)
        return found

    def retry(self) -> list[str]:
        """The arguments of a retry."""
        jid, worker, queue = self.held()
        if jid not in self._held:
            return [jid, queue, "nobody"]
        found = [jid, self._held[jid][1], worker]
        if self.one_in(2):
            found.append(self.delay())
            if self.one_in(2):
                found += [str(self.of(GROUPS)), "why"]
        return found

    def page(self) -> list[str]:
        """The begin and the size of a page, perhaps."""
        begin, size = ("0", "0", "0", "1", "-1", "-2"), ("1", "2", "25", "0", "-1", "-2")
        return [str(self.of(begin)), str(self.of(size))] if self.one_in(3) else []

    def recurring(self) -> str:
        """A recurring job's id; one that was deleted gets another, because the next one would number its runs anew."""
        name = str(self.of(RECURRING))
        return f"{name}{self._deleted.get(name, '')}"

    def of_runs(self, name: str) -> str:
        """A priority that only the runs of one recurring job have: they are due at whole seconds, as those of another
        may be, and of equal scores the original orders the names.
        """
        kind = RECURRING.index(name[0]) + len(RECURRING) * int(name[1:] or 0)
        return str(self.of((1, -1)) * (20 + kind))

    def recur(self) -> list[str]:
        """The arguments of a recurring job."""
        more = self.options("tags", "retries", "backlog")
        name = self.recurring()
        found = [str(self.of(QUEUES)), name, "k", str(self.of(DATA)), "interval"]
        more += ["priority", self.of_runs(name)]
        return [*found, str(self.of(INTERVALS)), str(self.of(("0", "0", "5", "30"))), *more]

    def update(self) -> list[str]:
        """The changes of a recurring job."""
        name = self.recurring()
        values = {
            "priority": self.of_runs(name),
            "retries": self.of(RETRIES),
            "data": self.of(DATA),
            "klass": "l",
            "queue": self.of(QUEUES),
            "backlog": self.of(("0", "1", "3")),
        }
        return [
            name,
            *(word for pair in values.items() if self.one_in(4) for word in map(str, pair)),
        ]

    def jobs(self) -> list[str]:
        """The arguments of a list of jobs."""
        state = str(self.of(("complete", "running", "stalled", "scheduled", "depends", "recurring")))
        return [state, *self.page()] if state == "complete" else [state, str(self.of(QUEUES)), *self.page()]

    def tag(self) -> list[str]:
        """The arguments of a change of tags, or a question about them."""
        command = str(self.of(("add", "add", "remove", "get", "get", "top")))
        if command in ("add", "remove"):
            return [command, self.jid(), *self.tags()]
        return [command, *([str(self.of(TAGS))] if command == "get" else []), *self.page()]

    def setting(self) -> list[str]:
        """An option, and a value for it."""
        name, values = self.of(SETTINGS)
        return [name, str(self.of(values))]


def _held(draw: Drawer, *more: str) -> list[str]:
    jid, worker, _ = draw.held()
    return [jid, worker, *more]


DRAWS: dict[str, Callable[[Drawer], list[str]]] = {
    "put": lambda d: d.put(str(d.of(JIDS))),
    "requeue": lambda d: d.put(d.jid()),
    "pop": lambda d: [d.of(QUEUES), d.of(WORKERS), d.of(COUNTS)],
    "peek": lambda d: [d.of(QUEUES), d.of(COUNTS)],
    "heartbeat": lambda d: _held(d, *([d.of(DATA)] if d.one_in(4) else [])),
    "complete": lambda d: d.complete(),
    "fail": lambda d: _held(d, d.of(GROUPS), "why", *([d.of(DATA)] if d.one_in(4) else [])),
    "retry": lambda d: d.retry(),
    "timeout": lambda d: [d.held()[0]],
    "cancel": lambda d: d.jids(),
    "priority": lambda d: [d.jid(), d.of(PRIORITIES)],
    "depends": lambda d: d.dependencies(),
    "log": lambda d: [d.jid(), "so far", *(['{"x":1}'] if d.one_in(2) else [])],
    "tag": lambda d: d.tag(),
    "track": lambda d: [d.of(("track", "track", "untrack")), d.jid()] if not d.one_in(3) else [],
    "get": lambda d: [d.jid()],
    "multiget": lambda d: d.jids(),
    "jobs": lambda d: d.jobs(),
    "failed": lambda d: [d.of(GROUPS), *d.page()] if d.one_in(2) else [],
    "queues": lambda d: [d.of(QUEUES)] if d.one_in(3) else [],
    "length": lambda d: [d.of(QUEUES)],
    "stats": lambda d: [d.of(QUEUES), number(d.now)],
    "workers": lambda d: [d.of(WORKERS)] if d.one_in(2) else [],
    "unfail": lambda d: [d.of(QUEUES), d.of(GROUPS), d.of(("1", "2", "25"))],
    "pause": lambda d: [d.of(QUEUES)],
    "unpause": lambda d: [d.of(QUEUES)],
    "queue.forget": lambda d: [d.of(QUEUES)],
    "worker.deregister": lambda d: [d.of(WORKERS)],
    "recur": lambda d: d.recur(),
    "unrecur": lambda d: [d.recurring()],
    "recur.get": lambda d: [d.recurring()],
    "recur.update": lambda d: d.update(),
    "recur.tag": lambda d: [d.recurring(), *d.tags()],
    "recur.untag": lambda d: [d.recurring(), *d.tags()],
    "config.get": lambda d: [d.setting()[0]] if d.one_in(2) else [],
    "config.set": lambda d: d.setting(),
    "config.unset": lambda d: [d.of(("heartbeat", "q-heartbeat", "mine", "grace-period", "never-set"))],
}
"""How to draw the arguments of each command."""


WEIGHTS = dict.fromkeys(DRAWS, 2) | {
    "put": 16, "pop": 18, "complete": 8, "fail": 5, "retry": 5, "heartbeat": 5, "timeout": 2, "cancel": 2, "get": 5,
    "peek": 5, "queues": 4, "jobs": 5, "pause": 1, "unpause": 3, "queue.forget": 1, "worker.deregister": 1,
    "stats": 3, "unfail": 3, "recur": 3, "unrecur": 1, "recur.untag": 1, "recur.tag": 1, "config.unset": 1,
}  # fmt: skip

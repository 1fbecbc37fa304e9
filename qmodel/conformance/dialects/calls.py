"""Draws calls of qless: mostly meaningful, by looking at the model's store, and sometimes hostile."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate

from qmodel.conformance.dialects.reqless import translated
from qmodel.conformance.dialects.subjects import Call
from qmodel.conformance.histories.choose import Chooser, pick
from qmodel.conformance.histories.generate import STYLES, Generator
from qmodel.conformance.subjects.base import Step
from qmodel.dialects.qless.commands import EARLY
from qmodel.dialects.qless.documents import DOCUMENTS, Place
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store
from qmodel.wire import codec

STARTS = (1_700_000_000_123,) * 4 + (0, 86_399_000)
PASSING = (0,) * 12 + (1, 1, 500, 500, 1000, 1000, 1000, 9_999, 10_000, 60_000, 70_000, 86_400_000, -1000)
DATA = ("{}", "[]", "null", '{"a":[1,2.50],"b":"\\u00e9\\/"}', '"x"', " 1e3 ", "x", "[}", "", "[" * 129 + "]" * 129)
OBJECTS = ("{}", '{"x":1}', ' { "what" : "other", "y":"z\\n" } ', "[1]", "3")
DELAYS = ("0",) * 14 + ("1", "0.5", "60", "-1", "1e1", "x", "1e9")
PRIORITIES = ("0", "1", "0", "1", "2", "-1", "5", "5", "1", "5", "-3", "7.0", "7.5", "1e1", "3e9", "inf", "0x10")
COUNTS = ("1", "1", "1", "1", "2", "2", "2", "3", "3", "25", "25", "0", "-1", "1.5", "1e9", "x")
RETRIES = ("0", "0", "1", "1", "2", "2", "5", "5", "-1", "1.5")
INTERVALS = ("1", "1", "1", "1", "10", "10", "60", "60", "0.5", "0.5", "3600", "0", "-1", "x")
OPTIONS = (
    "heartbeat", "grace-period", "jobs-history", "jobs-history-count", "max-job-history", "max-worker-age",
    "stats-history", "histogram-history", "application", "heartbeat-q", "q-heartbeat", "unknown", "max-events",
    "stats-tags", "stats-workers",
)  # fmt: skip
VALUES = ("0", "1", "2", "4", "10", "0.5", "1e1", "x", "-1", "86400")
HOSTILE = ("", " ", "nil", "nan", "inf", "0x10", "-1", "1.5", "1e400", "[}", "{}", "[]", '["a"]', "[1]", "null",
           "é", "a\nb", "\x00", "\x7f", "x" * 200, "a-data", '["\\ud800"]', '["\\ud83d\\ude00"]', "all", "on",
           "9" * 41, "'", '"\\', "%d{0}")  # fmt: skip
HOSTILE_PERCENT = 8
NATIVE_PERCENT = 12
DOCUMENT_PERCENT = 20


class CallGenerator:
    """Draws one history, a step at a time."""

    def __init__(self, chooser: Chooser, *, documents: bool = False) -> None:
        """With `documents`, also draw calls as the documents spell them."""
        self._documents = documents
        self._chooser = chooser
        self._below = chooser.below
        self._native = Generator(chooser, typed=False)
        self._names = pick(chooser, STYLES)
        self._now = pick(chooser, STARTS)
        self._reqless = self._below(3) == 1
        self._store = Store()
        self._fresh = 0
        self._commands = tuple(WEIGHTS)
        self._limits = list(accumulate(weight * pick(chooser, (3, 3, 1, 9)) for weight in WEIGHTS.values()))

    def step(self, store: Store) -> Call | Step | None:
        """Draw the next step."""
        if not self._chooser.begin():
            return None
        self._store = store
        self._now = max(self._now + pick(self._chooser, PASSING), 0)
        if self._below(100) < NATIVE_PERCENT:
            return self._native_step()
        chosen = self._below(self._limits[-1])
        command = next(name for name, limit in zip(self._commands, self._limits, strict=True) if chosen < limit)
        if command.startswith("recur.") and not self._store.schedules and self._below(8):
            command = "recur"
        while command in NEEDS and self._below(8):
            state, before = NEEDS[command]
            if any(job.state == state for job in self._store.jobs.values()):
                break
            command = before
        if self._documents and self._below(100) < DOCUMENT_PERCENT:
            return self._document_call(command)
        arguments = [command, self._moment(), *DRAWS[command](self)]
        said = translated(arguments) if self._reqless and self._below(12) else arguments
        if self._reqless and self._below(4) == 1:
            said = [EARLY + command, *arguments[1:]]
        return Call(tuple(self._spoilt(list(said))))

    def _document_call(self, command: str) -> Call | None:
        """Draw a call as a document spells it: one of qless, reordered, or one that only the document has."""
        document = self.of("000", "000", "001")
        operation = {"config.get": "getconfig", "config.set": "setconfig"}.get(command, command)
        found = DOCUMENTS[document].get(operation)
        if found is None:
            return None
        given = ONLY[document, operation](self) if callable(found) else self._turned(found, DRAWS[command](self))
        return Call((operation, *self._spoilt(given)), document)

    def _turned(self, places: tuple[Place, ...], drawn: list[str]) -> list[str]:
        """Put the arguments of a call in a document's order."""
        at: dict[int, str] = {} if places[1] == "now" else {int(places[1]): self._moment()}
        rest: list[str] = []
        for number, place in enumerate(places[2:]):
            if isinstance(place, int) and number < len(drawn):
                at[place] = drawn[number]
            elif not isinstance(place, int) and place.endswith("*"):
                rest = drawn[number:]
        return [at.get(place, "0") for place in range(max(at, default=-1) + 1)] + rest

    def _native_step(self) -> Step | None:
        """Draw an operation of the engine that the wire format can express."""
        drawn = self._native.step(self._store)
        try:
            return None if drawn is None or not codec.encode(drawn.op, self._now) else Step(self._now, drawn.op)
        except codec.Unencodable:
            return None

    def _moment(self) -> str:
        if self._below(40) == 0:
            return f"{self._now / 1000:e}"
        return str(self._now // 1000) if self._now % 1000 == 0 else repr(self._now / 1000)

    def _spoilt(self, arguments: list[str]) -> list[str]:
        """Give the arguments, sometimes with one that is wrong, missing or superfluous."""
        if self._below(100) < HOSTILE_PERCENT:
            at = self._below(len(arguments) + 1)
            match self._below(3):
                case 0:
                    del arguments[at:]
                case 1:
                    arguments[at : at + 1] = [pick(self._chooser, HOSTILE)]
                case _:
                    arguments.insert(at, pick(self._chooser, HOSTILE))
        return arguments

    # ---- what is drawn

    def of(self, *options: str) -> str:
        """One of some texts."""
        return pick(self._chooser, options)

    def jid(self) -> str:
        """A job's id, mostly one that exists."""
        there = list(self._store.jobs)
        if there and self._below(4):
            return pick(self._chooser, there)
        return pick(self._chooser, self._names.jids)

    def jids(self) -> list[str]:
        """A few ids."""
        return [self.jid() for _ in range(self._below(4))]

    def new_jid(self) -> str:
        """An id that is not in use, or one that is."""
        if self._below(3) == 0:
            return self.jid()
        self._fresh += 1
        return f"n{self._fresh}"

    def queue(self) -> str:
        """A queue, mostly one that has jobs ready."""
        there = [name for name, queue in self._store.queues.items() if queue.ready] or list(self._store.queues)
        return pick(self._chooser, there if there and self._below(3) else self._names.queues)

    def worker(self) -> str:
        """A worker."""
        return pick(self._chooser, self._names.workers)

    def job(self, state: str) -> Job | None:
        """A job in a state, if there is one."""
        found = [job for job in self._store.jobs.values() if job.state == state]
        return pick(self._chooser, found) if found and self._below(10) else None

    def held(self, *, queue: bool = False, queue_first: bool = False) -> list[str]:
        """A running job's id and worker, and its queue where it is wanted."""
        job = self.job("running")
        jid, worker, name = (job.jid, job.worker, job.queue) if job else (self.jid(), self.worker(), self.queue())
        worker = worker if self._below(12) else self.worker()
        name = name if self._below(12) else self.queue()
        if not queue:
            return [jid, worker]
        return [jid, name, worker] if queue_first else [jid, worker, name]

    def strings(self, options: list[str]) -> str:
        """A JSON list of texts."""
        return json.dumps(options, ensure_ascii=bool(self._below(2)))

    def tags(self) -> list[str]:
        """A few tags."""
        return [pick(self._chooser, self._names.tags) for _ in range(self._below(3))]

    def options(self) -> list[str]:
        """Options of a put."""
        found = []
        choices: tuple[tuple[str, Callable[[], str]], ...] = (
            ("priority", lambda: self.of(*PRIORITIES)),
            ("tags", lambda: self.strings(self.tags())),
            ("retries", lambda: self.of(*RETRIES)),
            ("depends", lambda: self.strings(self.jids())),
            ("throttles", lambda: self.of("[]", '["t"]', '["t"]', '["s","t"]', '["ql:q:q"]')),
        )
        for name, value in choices:
            if self._below(3) == 0:
                found += [name, value()]
        return found

    def put(self, jid: str) -> list[str]:
        """The arguments of a put."""
        klass = pick(self._chooser, self._names.klasses)
        return [
            self.worker(),
            self.queue(),
            jid,
            klass,
            self.of(*DATA[:6] * 4, *DATA),
            self.of(*DELAYS),
            *self.options(),
        ]

    def complete(self) -> list[str]:
        """The arguments of a completion."""
        found = [*self.held(queue=True), self.of(*DATA[:6] * 4, *DATA)]
        if self._below(3) == 0:
            found += ["next", self.queue()]
        for name, value in (("delay", self.of(*DELAYS)), ("depends", self.strings(self.jids()))):
            if self._below(4) == 0:
                found += [name, value]
        return found

    def depends(self) -> list[str]:
        """The arguments of a change of dependencies."""
        job = self.job("depends")
        jid = job.jid if job else self.jid()
        return [jid, *([self.of("on", "off"), *self.jids()] if self._below(5) else ["off", "all"])]

    def tag(self) -> list[str]:
        """The arguments of a change or look at tags."""
        command = self.of("add", "add", "remove", "get", "top")
        if command in ("add", "remove"):
            return [command, self.jid(), *self.tags(), pick(self._chooser, self._names.tags)]
        return [command, *([pick(self._chooser, self._names.tags)] if command == "get" else []), *self.window()]

    def part(self) -> list[str]:
        """By what statistics are shown, perhaps."""
        by = self.of("", "", "tag", "worker", "x")
        named = pick(self._chooser, self._names.tags) if by == "tag" else self.worker()
        return [by, named][: self._below(4)] if by else []

    def track(self) -> list[str]:
        """The arguments of tracking."""
        return [self.of("track", "track", "untrack", "UnTrack"), self.jid()] if self._below(4) else []

    def tid(self) -> str:
        """A throttle, mostly one that jobs name."""
        return self.of("t", "t", "s", "ql:q:" + self.queue())

    def window(self) -> list[str]:
        """Where a page begins and how long it is, perhaps."""
        return [self.of("0", "0", "1", "-1", "x"), self.of(*COUNTS)][: self._below(3)]

    def recurring(self) -> str:
        """A recurring job's id, mostly one that exists."""
        there = list(self._store.schedules)
        return pick(self._chooser, there if there and self._below(5) else self._names.jids)

    def recur(self) -> list[str]:
        """The arguments of a recurring job."""
        klass, spec = pick(self._chooser, self._names.klasses), self.of(*("interval",) * 12, "cron")
        found = [self.queue(), self.recurring(), klass, self.of(*DATA[:6] * 6, *DATA), spec]
        more = self.options()[:4] if self._below(3) == 0 else []
        backlog = ["backlog", self.of("1", "2", "3")] if self._below(20) else []  # else a day brings a thousand runs
        return [*found, self.of(*INTERVALS), self.of(*DELAYS), *more, *backlog]

    def changes(self) -> list[str]:
        """Changes of a recurring job."""
        found = []
        for name, value in (("interval", self.of(*INTERVALS)), ("priority", self.of(*PRIORITIES)),
                            ("queue", self.queue()), ("data", self.of(*DATA)), ("klass", "k"), ("backlog", "2"),
                            ("retries", self.of(*RETRIES)), ("count", "3")):  # fmt: skip
            if self._below(6) == 0:
                found += [name, value]
        return found

    def group(self) -> str:
        """A failure group, mostly one that there is."""
        there = list(self._store.groups)
        return pick(self._chooser, there if there and self._below(5) else self._names.groups)

    def failure(self) -> list[str]:
        """A group and a message."""
        return [pick(self._chooser, self._names.groups), self.of("why", "", 'a "line"\n\tand\x7f more', "é")]


def _some(draw: CallGenerator, *arguments: Callable[[], str]) -> list[str]:
    """Some of these arguments, from the first."""
    return [argument() for argument in arguments[: draw._below(len(arguments) + 1)]]


DRAWS: dict[str, Callable[[CallGenerator], list[str]]] = {
    "put": lambda d: d.put(d.new_jid()),
    "requeue": lambda d: d.put(d.jid()),
    "pop": lambda d: [d.queue(), d.worker(), d.of(*COUNTS)],
    "peek": lambda d: [d.queue(), d.of(*COUNTS), *_some(d, lambda: d.of(*COUNTS))],
    "heartbeat": lambda d: [*d.held(), *_some(d, lambda: d.of(*DATA))],
    "complete": lambda d: d.complete(),
    "fail": lambda d: [*d.held(), *d.failure(), *_some(d, lambda: d.of(*DATA))],
    "retry": lambda d: [
        *d.held(queue=True, queue_first=True),
        *([d.of(*DELAYS), *d.failure()] if d._below(2) else _some(d, lambda: d.of(*DELAYS))),
    ],
    "timeout": lambda d: [job.jid] if (job := d.job("running")) else d.jids(),
    "cancel": lambda d: d.jids(),
    "priority": lambda d: [d.jid(), d.of(*PRIORITIES)],
    "depends": lambda d: d.depends(),
    "log": lambda d: [d.jid(), d.of("so far", "a\nb", "z" * 1024), *_some(d, lambda: d.of(*OBJECTS))],
    "tag": lambda d: d.tag(),
    "track": lambda d: d.track(),
    "get": lambda d: [d.jid()],
    "recur": lambda d: d.recur(),
    "queue.recurAtInterval": lambda d: [word for word in d.recur() if word != "interval"],
    "unrecur": lambda d: [d.recurring()],
    "recur.get": lambda d: [d.recurring()],
    "recur.update": lambda d: [d.recurring(), *d.changes()],
    "recur.tag": lambda d: [d.recurring(), *d.tags(), "t"],
    "recur.untag": lambda d: [d.recurring(), *d.tags(), "t"],
    "multiget": lambda d: d.jids(),
    "jobs": lambda d: [
        d.of("complete", "running", "stalled", "scheduled", "depends", "waiting", "recurring", "zap"),
        *([d.queue()] if d._below(5) else []),
        *d.window(),
    ],
    "failed": lambda d: [d.group(), *d.window()] if d._below(3) else [],
    "queues": lambda d: _some(d, d.queue),
    "length": lambda d: [d.queue()],
    "stats": lambda d: [d.queue(), d._moment(), *d.part()],
    "workers": lambda d: _some(d, d.worker),
    "unfail": lambda d: [d.queue(), d.group(), *_some(d, lambda: d.of(*COUNTS))],
    "pause": lambda d: [d.queue() for _ in range(d._below(3))],
    "unpause": lambda d: [d.queue() for _ in range(1 + d._below(2))],
    "queue.forget": lambda d: [d.queue() for _ in range(d._below(3))],
    "worker.deregister": lambda d: [d.worker() for _ in range(d._below(3))],
    "config.get": lambda d: [d.of(*OPTIONS)] if d._below(3) else [],
    "config.set": lambda d: [d.of(*OPTIONS), d.of(*VALUES)],
    "config.unset": lambda d: [d.of(*OPTIONS)],
    "throttle.set": lambda d: [d.tid(), d.of("1", "1", "2", "0", "-1"), *_some(d, lambda: d.of("0", "10"))],
    "throttle.get": lambda d: [d.tid()],
    "throttle.ttl": lambda d: [d.tid()],
    "throttle.delete": lambda d: [d.tid()],
    "throttle.locks": lambda d: [d.tid()],
    "throttle.pending": lambda d: [d.tid()],
    "throttle.release": lambda d: [d.tid(), *d.jids()],
    "queue.throttle.set": lambda d: [d.queue(), d.of("1", "2", "0")],
    "job.addTag": lambda d: [d.jid(), *d.tags(), "t"],
    "queue.jobsByState": lambda d: [d.of("running", "scheduled"), d.queue(), *d.window()],
    "job.completeAndRequeue": lambda d: [*d.held(queue=True), "{}", d.queue(), *_some(d, lambda: "delay", lambda: "1")],
    "job.addDependency": lambda d: [job.jid if (job := d.job("depends")) else d.jid(), *d.jids()],
}
"""How to draw the arguments of each command; of reqless's names, one for each way of converting arguments."""

ONLY: dict[tuple[str, str], Callable[[CallGenerator], list[str]]] = {
    ("001", "put"): lambda d: [
        d.queue(), d.new_jid(), d.of(*DATA[:6] * 4, *DATA), d._moment(),
        *_some(d, lambda: d.of(*PRIORITIES), lambda: d.strings(d.tags()), lambda: d.of(*DELAYS)),
    ],
    ("001", "complete"): lambda d: [
        d.held()[0], *_some(d, lambda: d.of(*DATA[:6]), d.queue, lambda: d.of(*DELAYS))
    ],
    ("001", "fail"): lambda d: [d.held()[0], *d.failure(), d._moment()],
    ("000", "tag"): lambda d: [d.of("add", "remove"), d.jid(), d._moment(), "t"] if d._below(2) else ["get", "t"],
    ("000", "track"): lambda d: [d.of("track", "untrack"), d.jid(), d._moment()] if d._below(2) else [],
    ("000", "setconfig"): lambda d: [d.of(*OPTIONS), *_some(d, lambda: d.of(*VALUES))],
    ("001", "setconfig"): lambda d: [d.of(*OPTIONS), *_some(d, lambda: d.of(*VALUES))],
}  # fmt: skip
"""How to draw the arguments of calls that only a document spells."""

NEEDS = {
    **dict.fromkeys(
        ("complete", "fail", "retry", "heartbeat", "timeout", "job.completeAndRequeue"), ("running", "pop")
    ),
    **dict.fromkeys(("depends", "job.addDependency"), ("depends", "put")),
    "pop": ("waiting", "put"),
    "unfail": ("failed", "fail"),
}
"""The state of a job that a command needs, and the command that leads there."""

WEIGHTS = dict.fromkeys(DRAWS, 2) | {
    "put": 16, "requeue": 4, "pop": 14, "complete": 8, "fail": 5, "retry": 5, "heartbeat": 5, "timeout": 4, "cancel": 4,
    "depends": 4, "unfail": 4, "unpause": 3, "get": 4, "multiget": 3, "pause": 1, "track": 4, "config.set": 3,
    "recur": 5, "recur.update": 3,
}  # fmt: skip

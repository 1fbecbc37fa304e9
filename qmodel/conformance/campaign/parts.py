"""Parts of a campaign: what one process does of it, told as plain data.

`perform` is the kernel. Who calls it may be this process, several (`processes.py`), or Spark's executors
(`qmodel.pipeline.spark.campaign`); the sum of the parts is the same.

A history that fails is shrunk where it failed, for the subject is there, with a server of its own perhaps, and not
where the parts are summed. Shrinking takes seconds, so of a part only the first failures are shrunk, by a bounded
number of tries: where everything fails, the campaign does not stand still. The others are told as they were drawn.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from qmodel.conformance.campaign import campaign
from qmodel.conformance.campaign.reached import Reached, pairs, tell
from qmodel.conformance.compare import report, runner
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.base import Crash, Seen, Step, Subject

TRIES = 1500
"""By how many tries a failure is shrunk."""

HISTORIES = 25
"""How many histories a part has, unless it is said otherwise: some seconds of work at most."""


class Campaign(NamedTuple):
    """What is to be run.

    `open` makes the subject. It is sent to the processes, so it must be importable there, and those that are equal
    share one subject in a process. `shrunk` is how many failures of a part are shrunk. For the rest see `campaign.run`.
    """

    seed: str
    open: Callable[[], Subject]
    steps: int = campaign.STEPS
    every: int = 1
    typed: bool = True
    shrunk: int = 1


class Found(NamedTuple):
    """A history that failed.

    `history` is its name, `drawn` and `steps` how many steps it had and has after shrinking, `operation` the one after
    which the subject differs, in its `what` (reply, events, state, or crash: the server was gone). `text` is for
    people: transcript, vector and test; `vector` are JSON lines for `qmodel run`.
    """

    history: str
    what: str
    operation: str
    drawn: int
    steps: int
    shrunk: bool
    text: str
    vector: str


class Part(NamedTuple):
    """What became of the histories from number `first` on; `by` is the host and the process that ran them."""

    first: int
    histories: int
    steps: int
    seconds: float
    by: str
    subject: str
    reached: tuple[tuple[Reached, int], ...]
    failures: tuple[Found, ...]


def ranges(examples: int, size: int = HISTORIES) -> list[tuple[int, int]]:
    """The parts of a campaign: the first number of each, and how many histories it has."""
    return [(first, min(size, examples - first)) for first in range(0, examples, size)]


_subjects: dict[Any, Subject] = {}
"""The subjects that this process has opened. A server takes tenths of seconds to start, so it serves all parts."""


def perform(what: Campaign, first: int, count: int) -> Part:
    """Run a part of a campaign: `count` histories, from number `first` on."""
    began = time.monotonic()
    steps, reached, failures = 0, Counter[Reached](), list[Found]()
    for number in range(first, first + count):
        name = f"{what.seed}.{number}"
        history = campaign.drawn(name, what.steps, what.typed)
        steps += len(history)
        tell(history, reached)
        difference = _difference(what, history)
        if difference is not None:
            failures.append(_found(_subject(what), name, history, difference, len(failures) < what.shrunk))
    by = f"{socket.gethostname()}:{os.getpid()}"
    told = tuple(sorted(reached.items()))
    return Part(first, count, steps, time.monotonic() - began, by, _subject(what).name, told, tuple(failures))


def close() -> None:
    """Give back the subjects that this process has opened."""
    while _subjects:
        _subjects.popitem()[1].close()


def _subject(what: Campaign) -> Subject:
    return _subjects.get(what.open) or _subjects.setdefault(what.open, what.open())


def _difference(what: Campaign, history: list[Step]) -> runner.Difference | None:
    """The first difference. A server that is gone is opened anew, and the history is run once more.

    One that is gone again has not died by chance: that is what is told of the history.
    """
    subject = _subject(what)
    with contextlib.suppress(Exception):
        return runner.first_difference(history, subject, what.every)
    del _subjects[what.open]
    subject = _subject(what)
    try:
        return runner.first_difference(history, subject, what.every)
    except Exception as error:
        del _subjects[what.open]
        gone = Seen(Crash(repr(error)), (), None)
        return runner.Difference(len(history) - 1, "crash", (repr(error),), Seen(None, (), None), gone)


def _found(subject: Subject, name: str, history: list[Step], difference: runner.Difference, shrunk: bool) -> Found:
    failure = report.Failure(subject.name, name, history, history[: difference.at + 1], difference)
    shrunk = shrunk and difference.what != "crash"
    if shrunk:
        failure = campaign.failure(subject, name, history, difference, TRIES)
    short, at = failure.history, failure.difference
    operation = short[at.at].op.spec.name
    return Found(name, at.what, operation, len(history), len(short), shrunk, str(failure), json_lines.dumps(short))


class Total(campaign.Progress):
    """The sum of parts: how far a campaign came, what it reached, and what it found."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        super().__init__("")
        self.failures: list[Found] = []
        self.reached: Counter[Reached] = Counter()
        self.by: Counter[str] = Counter()
        self.busy = 0.0  # seconds of all processes together
        for part in parts:
            self.add(part)

    def add(self, part: Part) -> None:
        """Count a part."""
        self.subject = part.subject
        self.histories += part.histories
        self.steps += part.steps
        self.busy += part.seconds
        self.by[part.by] += part.histories
        self.reached.update(dict(part.reached))
        self.failures += part.failures

    def kinds(self) -> Iterator[Found]:
        """Of each kind of failure (in what, after which operation) the shortest that was shrunk."""
        best: dict[tuple[str, str], Found] = {}
        for one in sorted(self.failures, key=lambda one: (not one.shrunk, one.steps, one.history)):
            best.setdefault((one.operation, one.what), one)
        shrunk = [one for one in best.values() if one.shrunk]
        yield from shrunk or best.values()


def missed(reached: Iterable[Reached]) -> list[tuple[str, str]]:
    """The pairs of an operation and a situation that were never tried."""
    return sorted(pairs() - {(one.operation, one.situation) for one in reached})

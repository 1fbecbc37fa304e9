"""Parts of a campaign: the share of one process, reported as plain data.

`perform` is the kernel. This process, several processes (`processes.py`) or Spark's executors
(`qmodel.pipeline.spark.campaign`) call it; the sum of the parts is the same.

A failing history is shrunk in the process that ran it, because the subject, perhaps with a server of its own, is there
and not where the parts are summed. Shrinking takes seconds, so only the first failures of a part are shrunk, in a
bounded number of tries: a campaign in which everything fails still ends. The other failures are reported as drawn.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from qmodel.conformance.campaign import campaign
from qmodel.conformance.campaign.reached import Reached, count_outcomes, pairs
from qmodel.conformance.compare import report, runner
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.base import Crash, Seen, Step, Subject

TRIES = 1500
"""The most tries to shrink a failure."""

HISTORIES = 25
"""The default number of histories in a part: a few seconds of work."""


class Campaign(NamedTuple):
    """The campaign to run.

    `open` opens the subject. It is sent to the processes, so it must be importable there; equal ones share one subject
    in a process. `shrunk` is how many failures of a part are shrunk. For the other fields see `campaign.run`.
    """

    seed: str
    open: Callable[[], Subject]
    steps: int = campaign.STEPS
    every: int = 1
    typed: bool = True
    shrunk: int = 1
    lawful: bool = False


class Found(NamedTuple):
    """A history that failed.

    `history` is its name. It had `drawn` steps, and `steps` after shrinking. The subject differs after `operation`, in
    `what`: reply, events, state, laws, or crash (the server was gone). `text` is for people: transcript, vector and
    test. `vector` holds JSON lines for `qmodel run`.
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
    """The result of the histories from number `first` on; `by` names the host and the process that ran them."""

    first: int
    histories: int
    steps: int
    seconds: float
    by: str
    subject: str
    reached: tuple[tuple[Reached, int], ...]
    failures: tuple[Found, ...]


def ranges(examples: int, size: int = HISTORIES) -> list[tuple[int, int]]:
    """Split a campaign into parts: the first number of each, and its number of histories."""
    return [(first, min(size, examples - first)) for first in range(0, examples, size)]


_subjects: dict[Any, Subject] = {}
"""The subjects that this process has opened. Starting a server takes tenths of a second, so one serves all parts."""


def perform(what: Campaign, first: int, count: int) -> Part:
    """Run a part of a campaign: `count` histories, from number `first` on."""
    began = time.monotonic()
    steps, reached, failures = 0, Counter[Reached](), list[Found]()
    for number in range(first, first + count):
        name = f"{what.seed}.{number}"
        history = campaign.drawn(name, what.steps, what.typed)
        steps += len(history)
        count_outcomes(history, reached)
        difference = _difference(what, history)
        if difference is not None:
            failures.append(_found(_subject(what), name, history, difference, len(failures) < what.shrunk))
    by = f"{socket.gethostname()}:{os.getpid()}"
    told = tuple(sorted(reached.items()))
    return Part(first, count, steps, time.monotonic() - began, by, _subject(what).name, told, tuple(failures))


def close() -> None:
    """Close the subjects that this process has opened."""
    while _subjects:
        _subjects.popitem()[1].close()


def _subject(what: Campaign) -> Subject:
    if what.open not in _subjects:
        _subjects[what.open] = what.open()
        atexit.register(close)  # here, so that it comes before the end of a server that was started for this subject
    return _subjects[what.open]


def _difference(what: Campaign, history: list[Step]) -> runner.Difference | None:
    """Find the first difference. If the server is gone, open a new one and run the history once more.

    If the server is gone again, the history caused it: the difference is then a crash.
    """
    subject = _subject(what)
    with contextlib.suppress(Exception):
        return runner.first_difference(history, subject, what.every, lawful=what.lawful)
    del _subjects[what.open]
    subject = _subject(what)
    try:
        return runner.first_difference(history, subject, what.every, lawful=what.lawful)
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
    """The sum of parts: a campaign's progress, the outcomes that it reached, and its failures."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        super().__init__("")
        self.failures: list[Found] = []
        self.reached: Counter[Reached] = Counter()
        self.by: Counter[str] = Counter()
        self.busy = 0.0  # seconds of all processes together
        for part in parts:
            self.add(part)

    def add(self, part: Part) -> None:
        """Add a part to the sum."""
        self.subject = part.subject
        self.histories += part.histories
        self.steps += part.steps
        self.busy += part.seconds
        self.by[part.by] += part.histories
        self.reached.update(dict(part.reached))
        self.failures += part.failures

    def kinds(self) -> Iterator[Found]:
        """Give the shortest shrunk failure of each kind; a kind is an operation and what differs after it."""
        best: dict[tuple[str, str], Found] = {}
        for one in sorted(self.failures, key=lambda one: (not one.shrunk, one.steps, one.history)):
            best.setdefault((one.operation, one.what), one)
        shrunk = [one for one in best.values() if one.shrunk]
        yield from shrunk or best.values()


def missed(reached: Iterable[Reached]) -> list[tuple[str, str]]:
    """List the pairs of an operation and a situation that were never tried."""
    return sorted(pairs() - {(one.operation, one.situation) for one in reached})

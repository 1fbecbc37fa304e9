"""Something is done to all jobs that fit a filter, however many: a bounded part with each form that is sent.

First a preview counts them, with the operation that will do it. Then each part goes on from the cursor of the one
before, and the page says how far it has come; with a script it sends itself on, without one a button does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.web.job_lists import Wanted
from qmodel.web.source import BadInput, Source

PREVIEWS = 20
"""The steps of 1000 jobs after which a preview says `or more`."""

LOOK = 3.0
"""Seconds after which it does so, too: somebody waits for it, perhaps of a server that has much to do."""

SPAN = 1.0
"""Seconds after which a part ends with its step."""

KINDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "retry": ("Retry", "put back into their queues", ("queue", "klass", "tag", "group")),
    "cancel": ("Cancel", "canceled", ("queue", "state", "klass", "tag", "worker", "group")),
    "clean": ("Delete", "deleted", ("queue", "state", "klass", "tag", "group")),
}
"""Each kind: what the button says, what is said when it is done, and by what jobs may be chosen."""


@dataclass(frozen=True)
class Bulk:
    """What is done, to which jobs, and how far it has come."""

    kind: str
    wanted: Wanted
    older_ms: int = 0
    cursor: str = ""
    done: int = 0
    passed: int = 0

    def __post_init__(self) -> None:
        """Refuse a filter that the operation does not know: it would be done to more jobs than were meant."""
        if self.kind not in KINDS:
            raise BadInput(f"There is no action '{self.kind[:40]}' on many jobs.")
        given = dict(self.wanted.given)
        if self.kind == "retry" and given.get("state") == "failed":
            del given["state"]
        unknown = sorted(given.keys() - set(KINDS[self.kind][2]))
        if unknown:
            raise BadInput(f"'{KINDS[self.kind][0]} all' cannot choose jobs by {' and '.join(unknown)}.")
        if self.kind == "clean" and self.wanted.state not in ("complete", "failed"):
            raise BadInput("Only complete or failed jobs can be deleted by their age.")

    def operation(self, *, preview: bool = False) -> ops.Operation:
        """The operation of the next step."""
        given: dict[str, Any] = {**self.wanted.given, "cursor": self.cursor, "preview": preview}
        if self.kind == "cancel":
            return ops.CancelMany(**given)
        if self.kind == "clean":
            return ops.Clean(**given, older_ms=self.older_ms)
        given.pop("state", None)
        return ops.RetryMany(**given)

    def on(self, step: replies.Bulk) -> Bulk:
        """The same after a step."""
        return replace(self, cursor=step.cursor, done=self.done + step.done, passed=self.passed + step.passed)


def count(source: Source, bulk: Bulk) -> tuple[int, bool]:
    """How many jobs fit, and whether these are all."""
    if bulk.kind != "clean" and set(bulk.wanted.given) in ({"group"}, {"group", "state"}):
        return int(source.ask(ops.Failed(bulk.wanted.group, 0, 1)).total), True
    until = time.monotonic() + LOOK
    for _ in range(PREVIEWS):
        bulk = bulk.on(source.ask(bulk.operation(preview=True)))
        if not bulk.cursor:
            return bulk.done, True
        if time.monotonic() > until:
            break
    return bulk.done, False


def go_on(source: Source, bulk: Bulk) -> Bulk:
    """Do a part of it: at least a step."""
    until = time.monotonic() + SPAN
    while True:
        bulk = bulk.on(source.ask(bulk.operation()))
        if not bulk.cursor or time.monotonic() > until:
            return bulk

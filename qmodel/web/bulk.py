"""Bulk actions on all jobs that match a filter: each form that is sent does a bounded part.

First a preview counts the jobs, with the operation of the action. Then each part continues from the cursor of the one
before, and the page shows the progress. A script sends the next form; without one a button does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.present import bulk
from qmodel.present.bulk import KINDS
from qmodel.present.fields import BadInput
from qmodel.web.job_lists import Wanted
from qmodel.web.source import Source

PREVIEWS = 20
"""The steps of 1000 jobs after which a preview says `or more`."""

LOOK = 3.0
"""Seconds after which a preview ends, too: a person waits for it, perhaps of a busy server."""

SPAN = 1.0
"""Seconds after which a part ends, at the end of its step."""


@dataclass(frozen=True)
class Bulk:
    """A bulk action: its kind, the jobs, and its progress."""

    kind: str
    wanted: Wanted
    older_ms: int = 0
    cursor: str = ""
    done: int = 0
    passed: int = 0

    def __post_init__(self) -> None:
        """Refuse a filter that the operation does not know: the action would change more jobs than were meant."""
        if self.kind not in KINDS:
            raise BadInput(f"There is no action '{self.kind[:40]}' on many jobs.")
        given = dict(self.wanted.given)
        if self.kind == "retry" and given.get("state") == "failed":
            del given["state"]
        unknown = sorted(given.keys() - set(KINDS[self.kind].filters))
        if unknown:
            raise BadInput(f"'{KINDS[self.kind].label} all' cannot choose jobs by {' and '.join(unknown)}.")
        if self.kind == "clean" and self.wanted.state not in ("complete", "failed"):
            raise BadInput("Only complete or failed jobs can be deleted by their age.")

    def operation(self, *, preview: bool = False) -> ops.Operation:
        """Make the operation of the next step."""
        given = self.wanted.given
        return bulk.operation(self.kind, given, self.cursor, older_ms=self.older_ms, preview=preview)

    def on(self, step: replies.Bulk | replies.Cleaned) -> Bulk:
        """Give the action after a step."""
        return replace(self, cursor=step.cursor, done=self.done + step.done, passed=self.passed + step.passed)


def count(source: Source, action: Bulk) -> tuple[int, bool]:
    """Count the matching jobs; say whether the count is complete."""
    if action.kind != "clean" and set(action.wanted.given) in ({"group"}, {"group", "state"}):
        return int(source.ask(ops.Failed(action.wanted.group, 0, 1)).total), True
    until = time.monotonic() + LOOK
    for _ in range(PREVIEWS):
        action = action.on(source.ask(action.operation(preview=True)))
        if not action.cursor:
            return action.done, True
        if time.monotonic() > until:
            break
    return action.done, False


def go_on(source: Source, action: Bulk) -> Bulk:
    """Do a part of an action: at least one step."""
    until = time.monotonic() + SPAN
    while True:
        action = action.on(source.ask(action.operation()))
        if not action.cursor or time.monotonic() > until:
            return action

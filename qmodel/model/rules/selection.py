"""Finding jobs by their properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.refusals import refuse
from qmodel.model.rules.concurrency import ending
from qmodel.model.state import budget, cursors, failures, jobs, queues, workers
from qmodel.model.state.jobs import Filter
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

PARTS = {
    "waiting": ("ready", "scheduled"),
    "scheduled": ("scheduled",),
    "throttled": ("throttled",),
    "depends": ("depends",),
    "running": ("locks",),
    "stalled": ("locks",),
}
"""The lists of its queue that may contain a job of each state: a scheduled job that is due counts as waiting."""

ALL = ("ready", "scheduled", "throttled", "depends", "locks", "completed", "group")

CANCELING = ("cancel_many", "clean")
"""The operations that cancel what they find: a call ends at most 1000 dependencies, or those of its first job."""


class Walk:
    """What a search has found, how many dependencies these jobs have, if they are to be canceled; how many jobs it has
    examined, the units that these cost, and the position of the last one.
    """

    __slots__ = ("edges", "found", "last", "seen", "units")

    def __init__(self) -> None:
        self.found: list[Job] = []
        self.edges = self.seen = self.units = 0
        self.last: tuple[str, str, cursors.Key] = "", "", ()


def filter(op: Any, state: str | None, before: int | None = None) -> Filter:
    """The properties that the arguments of an operation ask for; `before` is the latest time of ending."""
    worker, klass_like, jid_like = (getattr(op, name, None) for name in ("worker", "klass_like", "jid_like"))
    return Filter(op.queue, state, op.klass, op.tag, worker, op.group, before, klass_like, jid_like)


def find(store: Store, now: int, operation: str, op: Any, wanted: Filter) -> tuple[list[Job], str]:
    """The matching jobs, up to `count`, among at most 1000 after the cursor, as far as the budget goes, and the new
    cursor; or refuse.
    """
    kinds, name = _kinds(wanted)
    at = _begins(op, operation, kinds)

    walk = Walk()
    walk.units = _before(store, operation, kinds, name)
    lists, many = _lists(store, kinds, name, wanted.group, at)
    for kind, whose in lists:
        after = at.key if at is not None and kind == at.kind and (kind != "group" or whose == at.name) else None
        for key, jid in cursors.page(store, kind, whose, after, MOST - walk.seen, _latest(kind, wanted)):
            if not _take(store, now, operation, op, walk, jobs.load(store, jid), wanted):
                return walk.found, cursors.write(*walk.last)
            walk.last = kind, whose, key
            if len(walk.found) == op.count or walk.seen == MOST:
                return walk.found, cursors.write(*walk.last)
    return walk.found, _beyond(walk, lists[-1]) if many else ""


def _beyond(walk: Walk, last: tuple[str, str]) -> str:
    """The cursor after the last of as many groups as one call lists, which others may follow; no job of it may be
    examined.
    """
    return cursors.write(*last, walk.last[2] if walk.last[:2] == last else (queues.FIRST, queues.FIRST))


def _latest(kind: str, wanted: Filter) -> int | None:
    """The latest time of ending of the jobs of a list that are examined, or None if any."""
    return wanted.before if kind in ("completed", "group") else None


def _before(store: Store, operation: str, kinds: tuple[str, ...], name: str) -> int:
    """The units for reading the order of a worker's leases: half as many as for looking at each; or refuse."""
    return workers.check_bounded(store, operation, name) // 2 if kinds == ("held",) else 0


def _has(walk: Walk, job: Job, text: str | None) -> bool:
    """Whether a job's data have a text in them, if one is searched."""
    if text is None:
        return True
    walk.units += budget.searching(job)
    return text in job.data


def _take(store: Store, now: int, operation: str, op: Any, walk: Walk, job: Job, wanted: Filter) -> bool:
    """Examine a job, and collect it if it matches; say whether the budget has room for it."""
    fits = jobs.fits(now, job, wanted) and _has(walk, job, getattr(op, "text", None))
    if not fits:
        walk.units += budget.moving(job)
    else:
        walk.units += budget.weight(job) if operation == "search" else ending(store, job)
    if fits and operation in CANCELING:
        walk.edges += len(job.dependencies)
    if walk.seen > 0 and (walk.units > budget.UNITS or walk.edges > MOST):
        return False
    walk.seen += 1
    if fits:
        walk.found.append(job)
    return True


def _begins(op: Any, operation: str, kinds: tuple[str, ...]) -> cursors.Cursor | None:
    """The position to start from; or refuse."""
    if not kinds:
        raise refuse("TOO_WIDE", operation)
    at = cursors.read(op.cursor)
    if op.cursor and (at is None or at.kind not in kinds):
        raise refuse("BAD_ARGUMENT", operation, "cursor")
    return at


def _kinds(wanted: Filter) -> tuple[tuple[str, ...], str]:
    """The kinds of lists to read, the shortest available, and their owner; none if no list fits."""
    if wanted.worker is not None:
        return ("held",), wanted.worker
    if wanted.group is not None:
        return ("group",), wanted.group
    if wanted.tag is not None:
        return ("tag",), wanted.tag
    if wanted.state == "complete":
        return ("completed",), ""
    if wanted.state == "failed":
        return ("group",), ""
    if wanted.queue is None:
        return (), ""
    return (ALL if wanted.state is None else PARTS[wanted.state]), wanted.queue


def _lists(
    store: Store, kinds: tuple[str, ...], name: str, group: str | None, at: cursors.Cursor | None
) -> tuple[list[tuple[str, str]], bool]:
    """The lists from the cursor on: kind, and owner; and whether they are as many groups as one call lists."""
    found: list[tuple[str, str]] = []
    begun, many = at is None, False
    for kind in kinds:
        begun = begun or (at is not None and kind == at.kind)
        if begun and kind == "group" and group is None:
            first = at.name if at is not None and at.kind == "group" else ""
            names = failures.names(store, first, MOST)
            found += [(kind, one) for one in names]
            many = len(names) == MOST
        elif begun:
            found.append((kind, name))
    return found, many


def acted(store: Store, preview: bool, found: list[Job], act: Callable[[Job], bool]) -> tuple[str, ...]:
    """Apply `act` to jobs; give the ids that it says it changed, or for a preview all. It may delete other
    jobs of the list.
    """
    return tuple(job.jid for job in found if preview or (jobs.get(store, job.jid) is job and act(job)))


def bulk(store: Store, preview: bool, found: list[Job], cursor: str, act: Callable[[Job], bool]) -> replies.Bulk:
    """Apply `act` to jobs, or only count them."""
    done = len(acted(store, preview, found, act))
    return replies.Bulk(done, len(found) - done, cursor)

"""Lists of jobs: choose the operation for a filter, and give one page.

If a list of the engine has just these jobs, a page is a part of that list, and its length is known. Jobs in several
lists (the waiting jobs of all queues) are these lists, one after the other; their lengths say where a page falls.
Anything else is a search that continues from a cursor; one page examines a bounded number of jobs. Without a filter the
jobs of the latest events are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.model.state import subjects
from qmodel.web.source import PAGE, Slice, Source

LISTS: dict[str, type[Any]] = {
    "waiting": ops.Waiting,
    "scheduled": ops.Scheduled,
    "depends": ops.Depending,
    "throttled": ops.Throttled,
    "running": ops.Running,
    "stalled": ops.Stalled,
}
"""The states that each queue has a list for."""

STEPS = 5
"""The maximum number of searches for one page; each examines up to 1000 jobs."""

RECENT = 500
"""The number of events that are read for the latest jobs."""


@dataclass(frozen=True)
class Wanted:
    """A filter of jobs; empty fields match everything. A `*` in `klass` and `jid` stands for any characters; `text` is
    searched in the data.
    """

    queue: str = ""
    state: str = ""
    klass: str = ""
    tag: str = ""
    worker: str = ""
    group: str = ""
    jid: str = ""
    text: str = ""

    @property
    def given(self) -> dict[str, str]:
        """Give the fields that are not empty."""
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def searchable(self) -> bool:
        """Say whether one list of the engine has all these jobs, so that they can be searched."""
        return bool(self.queue or self.tag or self.group or self.worker or self.state in ("complete", "failed"))

    @property
    def search(self) -> dict[str, str]:
        """Give the arguments of a search."""
        found = self.given
        if "jid" in found:
            found["jid_like"] = found.pop("jid")
        if "*" in self.klass:
            found["klass_like"] = found.pop("klass")
        return found

    @property
    def exact(self) -> bool:
        """Whether bulk actions know the filter."""
        return not (self.jid or self.text or "*" in self.klass)

    def fits(self, job: replies.Job) -> bool:
        """Whether a job matches by its state, its names and its data."""
        return (
            job.state == (self.state or job.state)
            and subjects.like(self.klass or "*", job.klass)
            and subjects.like(self.jid or "*", job.jid)
            and self.text in job.data
        )


def find(source: Source, wanted: Wanted, offset: int = 0, cursor: str = "", count: int = PAGE) -> Slice:
    """Give a page of the jobs that match."""
    asked = set(wanted.given)
    if asked == {"state"} and wanted.state in LISTS:
        made = LISTS[wanted.state]
        lengths = [(queue.name, int(getattr(queue, wanted.state))) for queue in source.all_queues()]
        return _joined(source, lengths, made, offset, count)
    if asked == {"state"} and wanted.state == "failed":
        groups = [(one.name, one.jobs) for one in source.all_groups()]
        return _joined(source, groups, ops.Failed, offset, count)
    single = _single(wanted, asked)
    if single is not None:
        page: replies.Page = source.ask(single(offset, count))
        return Slice(source.jobs(page.jids), offset, page.total, offset + count < page.total)
    if wanted.searchable:
        return _search(source, wanted, cursor, count)
    return _recent(source, wanted)


def _single(wanted: Wanted, asked: set[str]) -> Callable[[int, int], ops.Operation] | None:
    """Give the operation that lists exactly the jobs that match, if there is one."""
    if asked == {"queue", "state"} and wanted.state in LISTS:
        return lambda *part: LISTS[wanted.state](wanted.queue, *part)
    if asked == {"group"} or (asked == {"group", "state"} and wanted.state == "failed"):
        return lambda *part: ops.Failed(wanted.group, *part)
    if asked == {"tag"}:
        return lambda *part: ops.Tagged(wanted.tag, *part)
    if asked == {"state"} and wanted.state == "complete":
        return ops.Completed
    return None


def spread(lengths: list[tuple[str, int]], offset: int, count: int) -> Iterator[tuple[str, int, int]]:
    """Divide a page among several lists, one after the other: give the name of each list, the offset and the count.

    >>> list(spread([("a", 3), ("b", 0), ("c", 9)], 2, 4))
    [('a', 2, 1), ('c', 0, 3)]
    """
    for name, length in lengths:
        if offset < length and count > 0:
            taken = min(length - offset, count)
            yield name, offset, taken
            count -= taken
        offset = max(offset - length, 0)


def _joined(
    source: Source,
    lengths: list[tuple[str, int]],
    make: Callable[[str, int, int], ops.Operation],
    offset: int,
    count: int,
) -> Slice:
    pages = source.ask_all(make(name, at, most) for name, at, most in spread(lengths, offset, count))
    total = sum(length for _, length in lengths)
    jids = [jid for page in pages for jid in page.jids]
    return Slice(source.jobs(jids), offset, total, offset + count < total)


def _search(source: Source, wanted: Wanted, cursor: str, count: int) -> Slice:
    """Search until a page is full, or STEPS searches are done."""
    found: list[replies.Job] = []
    for _ in range(STEPS):
        step: replies.Found = source.ask(ops.Search(**wanted.search, cursor=cursor, count=count - len(found)))
        found += step.jobs
        cursor = step.cursor
        if not cursor or len(found) >= count:
            break
    return Slice(found, 0, None, bool(cursor), cursor, 0 if len(found) >= count or not cursor else STEPS * MOST)


def _recent(source: Source, wanted: Wanted) -> Slice:
    """Give the jobs of the latest events, newest first."""
    events = source.latest(RECENT)
    jids = dict.fromkeys(str(event.named["jid"]) for event in reversed(events) if "jid" in event.named)
    known = source.known(jids)
    jobs = [known[jid] for jid in jids if jid in known]
    fits = list(filter(wanted.fits, jobs))
    return Slice(fits[:PAGE], 0, None, False, looked=len(jobs))

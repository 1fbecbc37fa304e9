"""How jobs ended, for those who wait for it: what both clients share.

All who wait by one client share one *watch*. One of them, whoever comes first, leads: it sleeps until there are events,
reads them, and looks at those jobs that somebody waits for and of which an event says that they may have ended. When it
leaves, another one leads. So a thousand who wait cost one sleeping connection, and no thread.

No end is missed. Who comes enters the watch first, with its place in the events known by then; then it looks at its
jobs; then it sleeps. What ends before the look is seen by the look; what ends after it is told by an event after that
place. Where events are gone before they were read, or nothing was told for a while, all jobs are looked at again.

The state decides, and not the event: a job that was canceled and put again at once has not ended. The event only says
what became of a job that is gone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from qmodel.client.fields import Fields
from qmodel.contract import replies
from qmodel.contract.arguments import Id
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.errors import (
    JobCanceled,
    JobExpired,
    JobFailed,
    JobNotFound,
    JobRevoked,
    NotEnded,
    QmodelError,
    ResultNotKept,
    error_of,
)

ENDS: Final = frozenset({"completed", "failed", "canceled", "retired"})
"""The events after which a job may have ended."""

GROUPS: Final[tuple[tuple[str, type[JobFailed]], ...]] = (("revoked-", JobRevoked), ("expired-", JobExpired))
"""The failure groups, before the name of the queue, that have exceptions of their own."""

_JID: Final = Id()


class Ended(NamedTuple):
    """A job that has ended: as it was when that was seen, or, where it is gone, the event that told so."""

    jid: str
    known: replies.Job | None
    told: str


def check(jids: Iterable[str]) -> None:
    """Refuse what is no id: nobody else is to stumble over it when looking."""
    if not all(map(_JID.accepts, jids)):
        raise error_of(Refusal("BAD_ARGUMENT", ("get", "jid")))


def result_of(jid: str, ended: Ended | None, timeout: float) -> Any:
    """The result of a job, or the exception that says why there is none; None for one that has not ended in time."""
    if ended is None:
        return NotEnded(jid, timeout)
    if ended.known is None:
        return _gone(ended)
    if ended.known.state == "failed":
        return _failed(ended.known)
    try:
        return Fields(jid, ended.known)._decode(ended.known.result, "result", "result_text")
    except QmodelError as error:
        return error


def _gone(ended: Ended) -> QmodelError:
    if ended.told == "canceled":
        return JobCanceled(ended.jid)
    if ended.told:
        return ResultNotKept(ended.jid)
    return JobNotFound(Refusal("JOB_NOT_FOUND", (ended.jid,)))


def _failed(job: replies.Job) -> JobFailed:
    assert job.failure is not None
    kinds = (cls for prefix, cls in GROUPS if job.failure.group == prefix + job.queue)
    return next(kinds, JobFailed)(job.jid, job.failure.group, job.failure.message)


class Bell:
    """What wakes a thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.ring, self.clear = self._event.set, self._event.clear

    def wait(self, timeout: float) -> None:
        """Sleep until it rings, or time is up."""
        self._event.wait(min(timeout, threading.TIMEOUT_MAX))


class AsyncBell:
    """What wakes a task."""

    def __init__(self) -> None:
        import asyncio  # 15 ms that only an event loop has paid already

        self._event = asyncio.Event()
        self._wait_for = asyncio.wait_for
        self.ring, self.clear = self._event.set, self._event.clear

    async def wait(self, timeout: float) -> None:
        """Sleep until it rings, or time is up."""
        with contextlib.suppress(TimeoutError):
            await self._wait_for(self._event.wait(), min(timeout, threading.TIMEOUT_MAX))


class Waiter:
    """One who waits for some jobs, and how those ended of which it is known."""

    def __init__(self, jids: Iterable[str], ring: Callable[[], object]) -> None:
        self.missing = dict.fromkeys(jids)
        self.ended: dict[str, Ended] = {}
        self.ring = ring


class Watch:
    """Who waits for which jobs, who leads, and how far the events were read. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[Waiter, None] = {}
        self._by_jid: dict[str, dict[Waiter, None]] = {}
        self._told: dict[str, str] = {}
        self._leader: Waiter | None = None
        self.after: int | None = None

    def enter(self, waiter: Waiter) -> bool:
        """Let someone wait; say whether the place in the events is known already."""
        with self._lock:
            if not self._waiters:
                self.after = None
            self._waiters[waiter] = None
            for jid in waiter.missing:
                self._by_jid.setdefault(jid, {})[waiter] = None
            return self.after is not None

    def begin(self, newest: int) -> None:
        """Take the newest event as the place, unless there is one."""
        with self._lock:
            if self.after is None:
                self.after = newest

    def restart(self, newest: int) -> None:
        """Go back to the newest event where that is before the place: the server has lost what came between."""
        with self._lock:
            if self.after is None or newest < self.after:
                self.after = newest

    def lead(self, waiter: Waiter) -> bool:
        """Let someone lead; say whether it does, for there is one leader at a time."""
        with self._lock:
            self._leader = self._leader or waiter
            return self._leader is waiter

    def leave(self, waiter: Waiter) -> None:
        """Let someone wait no more, and wake another one where nobody leads."""
        with self._lock:
            del self._waiters[waiter]
            for jid in waiter.missing:
                self._strike(jid, waiter)
            if self._leader is waiter:
                self._leader = None
            if self._leader is None and self._waiters:
                next(iter(self._waiters)).ring()

    def _strike(self, jid: str, waiter: Waiter) -> None:
        waiting = self._by_jid[jid]
        del waiting[waiter]
        if not waiting:
            del self._by_jid[jid]
            self._told.pop(jid, None)

    def waited_for(self) -> list[str]:
        """The ids of all jobs that somebody waits for."""
        with self._lock:
            return list(self._by_jid)

    def take(self, after: int, page: Sequence[Event]) -> list[str]:
        """Read a page of events; give the ids of the jobs to look at."""
        with self._lock:
            if self.after == after and page:
                self.after = page[-1].seq
            ended: dict[str, None] = {}
            for event in page:
                if event.event in ENDS and (jid := str(event.facts[0])) in self._by_jid:
                    ended[jid] = None
                    self._told[jid] = event.event
            if page and page[0].seq != after + 1:
                return list(self._by_jid)
            return list(ended)

    def tell(self, jids: Sequence[str], found: Iterable[replies.Job]) -> None:
        """Tell those who wait for jobs of those that have ended, of which this is what there is."""
        known = {job.jid: job for job in found}
        with self._lock:
            for jid in jids:
                job = known.get(jid)
                if job is None or job.state in ("complete", "failed"):
                    self._end(Ended(jid, job, self._told.get(jid, "")))

    def _end(self, ended: Ended) -> None:
        for waiter in list(self._by_jid.get(ended.jid, ())):
            self._strike(ended.jid, waiter)
            del waiter.missing[ended.jid]
            waiter.ended[ended.jid] = ended
            if not waiter.missing:
                waiter.ring()

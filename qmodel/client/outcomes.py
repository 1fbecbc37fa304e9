"""Waiting for the results of jobs: the part that both clients share.

All waiters of one client share one `Watch`. One of them, the first, is the leader. It sleeps until there are events,
reads them, and fetches the jobs that somebody waits for and that may have ended according to an event. When the leader
has its results, another waiter becomes the leader. So a thousand waiters cost one sleeping connection and no thread.

No end is missed. A waiter first enters the watch, and the position in the events is known from then on; then it fetches
its jobs; then it sleeps. An end before the fetch is seen by the fetch; an end after it has an event after that
position. If events were dropped before they were read, or no event came for a while, all jobs are fetched again.

The state decides, not the event: a job that was canceled and put again at once has not ended. The event only says how
a job ended that is gone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from qmodel import runtime
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
"""Events after which a job may have ended."""

GROUPS: Final[tuple[tuple[str, type[JobFailed]], ...]] = (("revoked-", JobRevoked), ("expired-", JobExpired))
"""Failure groups with an exception class of their own; the group's name is this prefix and the queue's name."""

_JID: Final = Id()


class Ended(NamedTuple):
    """A job that has ended: the job as it was fetched, or None if it is gone, and the event that reported the end."""

    jid: str
    known: replies.Job | None
    event: str


def check(jids: Iterable[str]) -> None:
    """Refuse an invalid id now, because it would break the fetch for other waiters too."""
    if not all(map(_JID.accepts, jids)):
        raise error_of(Refusal("BAD_ARGUMENT", ("get", "jid")))


def result_of(jid: str, ended: Ended | None, timeout: float) -> Any:
    """Give the result of a job, or the exception that explains why there is none. `ended` is None after a timeout."""
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
    if ended.event == "canceled":
        return JobCanceled(ended.jid)
    if ended.event:
        return ResultNotKept(ended.jid)
    return JobNotFound(Refusal("JOB_NOT_FOUND", (ended.jid,)))


def _failed(job: replies.Job) -> JobFailed:
    assert job.failure is not None
    kinds = (cls for prefix, cls in GROUPS if job.failure.group == prefix + job.queue)
    return next(kinds, JobFailed)(job.jid, job.failure.group, job.failure.message)


class Signal:
    """Wakes a sleeping thread."""

    def __init__(self) -> None:
        self._event = runtime.Event()
        self.set, self.clear = self._event.set, self._event.clear

    def wait(self, timeout: float) -> None:
        """Sleep until the signal is set, or `timeout` seconds have passed."""
        self._event.wait(min(timeout, threading.TIMEOUT_MAX))


class AsyncSignal:
    """Wakes a sleeping task."""

    def __init__(self) -> None:
        import asyncio  # costs 15 ms, which an event loop has paid already

        self._event = asyncio.Event()
        self._wait_for = asyncio.wait_for
        self.set, self.clear = self._event.set, self._event.clear

    async def wait(self, timeout: float) -> None:
        """Sleep until the signal is set, or `timeout` seconds have passed."""
        with contextlib.suppress(TimeoutError):
            await self._wait_for(self._event.wait(), min(timeout, threading.TIMEOUT_MAX))


class Waiter:
    """A waiter: the jobs that it still waits for, and those that have ended."""

    def __init__(self, jids: Iterable[str], wake: Callable[[], object]) -> None:
        self.missing = dict.fromkeys(jids)
        self.ended: dict[str, Ended] = {}
        self.wake = wake


class Watch:
    """The waiters by job, the leader, and the position in the events. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = runtime.Lock()
        self._waiters: dict[Waiter, None] = {}
        self._by_jid: dict[str, dict[Waiter, None]] = {}
        self._last_event: dict[str, str] = {}
        self._leader: Waiter | None = None
        self.after: int | None = None
        self.epoch = 0

    def enter(self, waiter: Waiter) -> bool:
        """Add a waiter; say whether the position in the events is known already."""
        with self._lock:
            if not self._waiters:
                self.after = None
            self._waiters[waiter] = None
            for jid in waiter.missing:
                self._by_jid.setdefault(jid, {})[waiter] = None
            return self.after is not None

    def begin(self, newest: replies.Newest) -> None:
        """Start at the newest event, unless the position is known."""
        with self._lock:
            if self.after is None:
                self.after, self.epoch = newest

    def restart(self, newest: replies.Newest, forked: bool = False) -> None:
        """Go to the newest event if it is before the position, or others were lost: fetch all jobs then."""
        with self._lock:
            if self.after is None or newest.seq < self.after or forked:
                self.after, self.epoch = newest

    def lead(self, waiter: Waiter) -> bool:
        """Make a waiter the leader if there is none; say whether it leads now."""
        with self._lock:
            self._leader = self._leader or waiter
            return self._leader is waiter

    def leave(self, waiter: Waiter) -> None:
        """Remove a waiter. If there is no leader then, wake another waiter to lead."""
        with self._lock:
            del self._waiters[waiter]
            for jid in waiter.missing:
                self._remove(jid, waiter)
            if self._leader is waiter:
                self._leader = None
            if self._leader is None and self._waiters:
                next(iter(self._waiters)).wake()

    def _remove(self, jid: str, waiter: Waiter) -> None:
        waiting = self._by_jid[jid]
        del waiting[waiter]
        if not waiting:
            del self._by_jid[jid]
            self._last_event.pop(jid, None)

    def waited_for(self) -> list[str]:
        """List the ids of all jobs that somebody waits for."""
        with self._lock:
            return list(self._by_jid)

    def take(self, after: int, page: Sequence[Event]) -> list[str]:
        """Read a page of events; give the ids of the jobs to fetch."""
        with self._lock:
            if self.after == after and page:
                self.after, self.epoch = page[-1].seq, page[-1].epoch
            ended: dict[str, None] = {}
            for event in page:
                if event.event in ENDS and (jid := str(event.facts[0])) in self._by_jid:
                    ended[jid] = None
                    self._last_event[jid] = event.event
            if page and page[0].seq != after + 1:
                return list(self._by_jid)
            return list(ended)

    def notify(self, jids: Sequence[str], found: Iterable[replies.Job]) -> None:
        """Notify waiters of ended jobs; `found` are the fetched jobs that still exist."""
        known = {job.jid: job for job in found}
        with self._lock:
            for jid in jids:
                job = known.get(jid)
                if job is None or job.state in ("complete", "failed"):
                    self._end(Ended(jid, job, self._last_event.get(jid, "")))

    def _end(self, ended: Ended) -> None:
        for waiter in list(self._by_jid.get(ended.jid, ())):
            self._remove(ended.jid, waiter)
            del waiter.missing[ended.jid]
            waiter.ended[ended.jid] = ended
            if not waiter.missing:
                waiter.wake()

"""Waiting for the results of jobs and for the end of requests: the part that both clients share.

All waiters of one client share one `Watch`. One of them, the first, is the leader. It sleeps until there are events,
reads them, and fetches the jobs and requests that somebody waits for and that may have ended according to an event.
When the leader has its results, another waiter becomes the leader. So a thousand waiters cost one sleeping connection
and no thread.

No end is missed. A waiter first enters the watch, and the position in the events is known from then on; then it fetches
its jobs; then it sleeps. An end before the fetch is seen by the fetch; an end after it has an event after that
position. If events were dropped before they were read, or no event came for a while, all jobs are fetched again. The
same holds for requests.

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
    RequestNotEnded,
    RequestNotFound,
    ResultNotKept,
    error_of,
)

ENDS: Final = frozenset({"completed", "failed", "canceled", "retired"})
"""Events after which a job may have ended."""

REQUEST_ENDS: Final = frozenset({"request_done", "request_forgotten"})
"""Events after which a request has ended."""

GROUPS: Final[tuple[tuple[str, type[JobFailed]], ...]] = (("revoked-", JobRevoked), ("expired-", JobExpired))
"""Failure groups with an exception class of their own; the group's name is this prefix and the queue's name."""

_JID: Final = Id()


class RequestKey(NamedTuple):
    """A request that is waited for. A job is waited for by its id alone; a request may have the same id."""

    id: str


Key = str | RequestKey
"""What is waited for."""


class Ended(NamedTuple):
    """A job that has ended: the job as it was fetched, or None if it is gone, and the event that reported the end."""

    jid: str
    known: replies.Job | None
    event: str


class RequestEnded(NamedTuple):
    """A request that has ended: as it was fetched, or None if it does not exist."""

    known: replies.Request | None


def jids_among(keys: Iterable[Key]) -> list[str]:
    """List the jobs among what is waited for."""
    return [key for key in keys if isinstance(key, str)]


def requests_among(keys: Iterable[Key]) -> list[RequestKey]:
    """List the requests among what is waited for."""
    return [key for key in keys if isinstance(key, RequestKey)]


def request_of(id: str, ended: RequestEnded | None, timeout: float) -> replies.Request:
    """Give the final state of a request, or raise why there is none. `ended` is None after a timeout."""
    if ended is None:
        raise RequestNotEnded(id, timeout)
    if ended.known is None:
        raise RequestNotFound(Refusal("REQUEST_NOT_FOUND", (id,)))
    return ended.known


def check(jids: Iterable[str]) -> None:
    """Refuse an invalid id now, because it would break the fetch for other waiters too."""
    if not all(map(_JID.accepts, jids)):
        raise error_of(Refusal("BAD_ARGUMENT", ("get", "jid")))


def check_request(id: str) -> None:
    """Refuse an invalid id of a request now, for the same reason."""
    if not _JID.accepts(id):
        raise error_of(Refusal("BAD_ARGUMENT", ("request_get", "id")))


def result_of(jid: str, ended: Ended | None, timeout: float) -> Any:
    """Give the result of a job, or the exception that explains why there is none. `ended` is None after a timeout."""
    if ended is None:
        return NotEnded(jid, timeout)
    if ended.known is None:
        return _gone(ended)
    if ended.known.state == "failed":
        failure = ended.known.failure
        assert failure is not None
        return _failed(jid, ended.known.queue, failure.group, failure.message)
    return _decoded(jid, ended.known.result)


def sub_result(queue: str, one: replies.SubRequest) -> Any:
    """Give the result of a sub-request, or the exception that explains why there is none."""
    if one.outcome == "done":
        return _decoded(one.jid, one.result) if one.state == "complete" else ResultNotKept(one.jid)
    if one.outcome == "failed":
        return _failed(one.jid, queue, one.group, one.result if one.group else "Its failure is no longer kept.")
    return JobCanceled(one.jid) if one.outcome == "canceled" else NotEnded(one.jid, 0)


def _decoded(jid: str, text: str) -> Any:
    """Decode a result, or give the exception that explains why that is impossible."""
    try:
        return Fields(jid)._decode(text, "result", "result_text")
    except QmodelError as error:
        return error


def _gone(ended: Ended) -> QmodelError:
    if ended.event == "canceled":
        return JobCanceled(ended.jid)
    if ended.event:
        return ResultNotKept(ended.jid)
    return JobNotFound(Refusal("JOB_NOT_FOUND", (ended.jid,)))


def _failed(jid: str, queue: str, group: str, message: str) -> JobFailed:
    kinds = (cls for prefix, cls in GROUPS if group == prefix + queue)
    return next(kinds, JobFailed)(jid, group, message)


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
    """A waiter: the jobs and requests that it still waits for, and those that have ended."""

    def __init__(self, keys: Iterable[Key], wake: Callable[[], object]) -> None:
        self.missing: dict[Key, None] = dict.fromkeys(keys)
        self.ended: dict[str, Ended] = {}
        self.requests: dict[str, RequestEnded] = {}
        self.wake = wake
        self.number = 0


class Watch:
    """The waiters by job or request, the leader, and the position in the events. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = runtime.Lock()
        self._waiters: dict[Waiter, None] = {}
        self._by_key: dict[Key, dict[Waiter, None]] = {}
        self._last_event: dict[str, str] = {}
        self._leader: Waiter | None = None
        self._entered = 0
        self.after: int | None = None
        self.epoch = 0

    def enter(self, waiter: Waiter) -> bool:
        """Add a waiter; say whether the position in the events is known already."""
        with self._lock:
            if not self._waiters:
                self.after = None
            self._waiters[waiter] = None
            self._entered += 1
            waiter.number = self._entered
            for key in waiter.missing:
                self._by_key.setdefault(key, {})[waiter] = None
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
            for key in waiter.missing:
                self._remove(key, waiter)
            if self._leader is waiter:
                self._leader = None
            if self._leader is None and self._waiters:
                next(iter(self._waiters)).wake()

    def _remove(self, key: Key, waiter: Waiter) -> None:
        waiting = self._by_key[key]
        del waiting[waiter]
        if not waiting:
            del self._by_key[key]
            if isinstance(key, str):
                self._last_event.pop(key, None)

    def mark(self) -> int:
        """Give what `notify` must be told: what is fetched from now on holds for those who have entered so far. Who
        enters later may have put the job again, and fetches it.
        """
        with self._lock:
            return self._entered

    def waited_for(self) -> list[Key]:
        """List all jobs and requests that somebody waits for."""
        with self._lock:
            return list(self._by_key)

    def passed(self, after: int, page: Sequence[Event]) -> None:
        """Go on to the end of a page, when what it names was fetched: a leader that is cancelled before that leaves
        the page to the next one.
        """
        with self._lock:
            if self.after == after:
                self.after, self.epoch = page[-1].seq, page[-1].epoch

    def take(self, after: int, page: Sequence[Event]) -> list[Key]:
        """Read a page of events; give the jobs and requests to fetch."""
        with self._lock:
            ended: dict[Key, None] = {}
            for event in page:
                if event.event in ENDS and (jid := str(event.facts[0])) in self._by_key:
                    ended[jid] = None
                    self._last_event[jid] = event.event
                elif event.event in REQUEST_ENDS and (key := RequestKey(str(event.facts[0]))) in self._by_key:
                    ended[key] = None
            if page and page[0].seq != after + 1:
                return list(self._by_key)
            return list(ended)

    def notify(self, jids: Sequence[str], found: Iterable[replies.Job], mark: int) -> None:
        """Notify waiters of ended jobs; `found` are the fetched jobs that still exist."""
        known = {job.jid: job for job in found}
        with self._lock:
            for jid in jids:
                job = known.get(jid)
                if job is None or job.state in ("complete", "failed"):
                    ended = Ended(jid, job, self._last_event.get(jid, ""))
                    for waiter in self._end(jid, mark):
                        waiter.ended[jid] = ended
                        wake(waiter)

    def notify_requests(self, keys: Sequence[RequestKey], found: Iterable[replies.Request | None], mark: int) -> None:
        """Notify waiters of ended requests; `found` are the requests as fetched, None where one does not exist."""
        with self._lock:
            for key, known in zip(keys, found, strict=True):
                if known is None or known.ended_at:
                    for waiter in self._end(key, mark):
                        waiter.requests[key.id] = RequestEnded(known)
                        wake(waiter)

    def _end(self, key: Key, mark: int) -> list[Waiter]:
        """Remove what has ended from its waiters up to a mark, and give these."""
        waiters = [waiter for waiter in self._by_key.get(key, ()) if waiter.number <= mark]
        for waiter in waiters:
            self._remove(key, waiter)
            del waiter.missing[key]
        return waiters


def wake(waiter: Waiter) -> None:
    """Wake a waiter that waits for nothing more."""
    if not waiter.missing:
        waiter.wake()

"""Sleeps in the place of a worker that has nothing to do, and wakes it; so that it can hear other things meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final

from qmodel.contract.operations import Multiget, Pop, PopAny, Queue, Release, Running, Workers
from qmodel.contract.replies import Page, QueueCounts
from qmodel.errors import ConnectError
from qmodel.worker.connection import Line

log = logging.getLogger("qmodel.worker")

BACK: Final = 60_000.0
"""Milliseconds by which what the server tells of its clock may lag before we take it for set back."""

LONGEST_SLEEP = 1.0
"""Seconds after which an idle worker looks by itself. Nothing wakes it for a job that was put, or given back, with a
delay after it fell asleep, so that begins so late at most; and looking costs some tenths of a millisecond."""

_AWAY: Final = 0.5
"""Seconds to sleep where the server cannot be asked; the worker's own pop says so, and waits longer."""


class Bell:
    """Rings once each time that it was set: when a job may be ready in one of the queues.

    A wake-up is for one worker. Where it comes to one that has stopped meanwhile, or is to be quiet (`hushed`), it is
    passed on: a job is taken and given back, which wakes another.
    """

    def __init__(self, line: Line, queues: Sequence[str], worker: str, ring: Callable[[], None]) -> None:
        self._line = line
        self._queues = tuple(queues)
        self._worker = worker
        self._ring = ring
        self._set: SimpleQueue[bool] = SimpleQueue()
        self._last = self._tries = 0
        self._ahead = 0.0
        self.silenced = self.hushed = False
        self._passing = threading.Lock()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="qmodel-bell", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def set(self) -> None:
        """Ring when there may be a job."""
        self._set.put(True)

    def close(self) -> None:
        """Ring no more."""
        self.silenced = True
        self._set.put(False)

    def finish(self) -> None:
        """Pass nothing on any more: a job that was taken for that has been given back when this returns."""
        with self._passing:
            self._over = True

    def _run(self) -> None:
        while self._set.get():
            try:
                woken = self._sleep()
                if woken and (self.silenced or self.hushed):
                    self._pass_on()
            except ConnectError:
                time.sleep(_AWAY)
            except Exception:  # who is never woken never works: whatever it is, wake up and look
                log.exception("To wait for jobs went wrong; they are looked for instead.")
                time.sleep(_AWAY)
            if self.silenced:
                return
            self._ring()

    def _sleep(self) -> bool:
        woken = self._line.client.backend.wait(self._queues, self._until_next())
        if woken:  # by a job: that says nothing about the moment for which we slept
            self._last = 0
        return woken

    def _until_next(self) -> float:
        """Seconds until a job becomes ready by itself; a little more each time that this turned out too early.

        By the server's clock, which our pop, a moment ago, told to the list of workers: ours may be an hour off. What
        became ready by itself after that pop has left no wake-up, so where jobs are ready it is soon tried again; and
        so it is where a lease ends without its worker's word, until its grace is over.
        """
        asked = [op for name in self._queues for op in (Queue(name), Running(name, 0, 1))]
        *told, seen = self._line.client.execute_many([*asked, Workers(0, 1)])
        counts = [one for one in told if isinstance(one, QueueCounts)]
        moments = [one.next_at for one in counts if one.next_at]
        moments += self._expiries(tuple(jid for one in told if isinstance(one, Page) for jid in one.jids))
        if any((one.waiting and not one.paused) or one.stalled for one in counts):
            moments.append(1)
        next_at = min(moments, default=0)
        self._tries = self._tries + 1 if next_at == self._last else 0
        self._last = next_at
        if not next_at or not seen:
            return LONGEST_SLEEP
        left: float = max(next_at - self._now(seen[0].seen_at), 0) / 1000 + 0.001 * 2 ** min(self._tries, 10)
        return min(left, LONGEST_SLEEP)

    def _now(self, seen_at: int) -> float:
        """The server's time, from when a worker was last seen, which it never is before, and is written once a second:
        so what counts is the least by which that was ever behind, unless the server's clock was set back.
        """
        passed = time.monotonic() * 1000
        ahead = seen_at - passed
        if not self._ahead - BACK < ahead < self._ahead:
            self._ahead = ahead
        return passed + self._ahead

    def _expiries(self, running: tuple[str, ...]) -> list[int]:
        """When the leases of jobs end."""
        found = self._line.client.execute(Multiget(running)) if running else ()
        return [job.expires_at for job in found if job is not None and job.expires_at]

    def _pass_on(self) -> None:
        client = self._line.client
        one = len(self._queues) == 1
        pop = Pop(self._queues[0], self._worker) if one else PopAny(self._queues, self._worker)
        with self._passing:
            if not self._over:
                client.execute_many([Release(job.jid, job.token) for job in client.execute(pop)])

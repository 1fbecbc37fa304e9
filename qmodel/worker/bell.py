"""Sleeps in the place of a worker that has nothing to do, and wakes it; so that it can hear other things meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final

from qmodel.errors import QmodelError
from qmodel.objects import LONGEST_SLEEP
from qmodel.operations import Pop, PopAny, Queue, Release, Workers
from qmodel.replies import QueueCounts
from qmodel.worker.line import Line

_AWAY: Final = 0.5
"""Seconds to sleep where the server cannot be asked; the worker's own pop says so, and waits longer."""


class Bell:
    """Rings once each time that it was set: when a job may be ready in one of the queues.

    A wake-up is for one worker. Where it comes to one that has stopped meanwhile, it is passed on: a job is taken and
    given back, which wakes another.
    """

    def __init__(self, line: Line, queues: Sequence[str], worker: str, ring: Callable[[], None]) -> None:
        self._line = line
        self._queues = tuple(queues)
        self._worker = worker
        self._ring = ring
        self._set: SimpleQueue[bool] = SimpleQueue()
        self._last = self._tries = 0
        self.silenced = False
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

    def _run(self) -> None:
        while self._set.get():
            try:
                woken = self._sleep()
                if woken and self.silenced:
                    self._pass_on()
            except QmodelError:
                time.sleep(_AWAY)
            if self.silenced:
                return
            self._ring()

    def _sleep(self) -> bool:
        return self._line.client.backend.wait(self._queues, self._until_next())

    def _until_next(self) -> float:
        """Seconds until a job becomes ready by itself; a little more each time that this turned out too early.

        By the server's clock, which our pop, a moment ago, told to the list of workers: ours may be an hour off. What
        became ready by itself after that pop has left no wake-up, so where jobs are ready it is soon tried again.
        """
        *counts, seen = self._line.client.execute_many([*map(Queue, self._queues), Workers(0, 1)])
        known = [one for one in counts if isinstance(one, QueueCounts)]
        next_at = min((one.next_at for one in known if one.next_at), default=0)
        if any(one.waiting and not one.paused for one in known):
            next_at = 1
        self._tries = self._tries + 1 if next_at == self._last else 0
        self._last = next_at
        if not next_at or not seen:
            return LONGEST_SLEEP
        left: float = max(next_at - seen[0].seen_at, 0) / 1000 + 0.001 * 2 ** min(self._tries, 10)
        return min(left, LONGEST_SLEEP)

    def _pass_on(self) -> None:
        client = self._line.client
        one = len(self._queues) == 1
        pop = Pop(self._queues[0], self._worker) if one else PopAny(self._queues, self._worker)
        client.execute_many([Release(job.jid, job.token) for job in client.execute(pop)])

"""The round trips of a worker: reports of jobs that have ended, and a pop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from qmodel import runtime
from qmodel.contract import replies
from qmodel.contract.operations import Operation
from qmodel.worker.attempt import Attempt
from qmodel.worker.connection import Connection, is_error
from qmodel.worker.fetch import FetchPlan
from qmodel.worker.reports import joined
from qmodel.worker.wake_ups import WakeUps

Report = tuple[Operation, list[Attempt]]


@dataclass(frozen=True, slots=True)
class Taker:
    """What the worker does with replies, and what it must be asked."""

    apply: Callable[[Operation, list[Attempt], Any], None]
    accept: Callable[[Sequence[replies.Job], float, float], None]
    pause: Callable[[], None]
    is_busy: Callable[[], bool]
    call_soon: Callable[[Callable[[], None]], None]


class RoundTrips:
    """Talks to one namespace."""

    rests = unanswered = False

    def __init__(self, connection: Connection, plan: FetchPlan, taker: Taker) -> None:
        self._connection, self._plan, self._taker = connection, plan, taker
        self._waits = self._apart = False
        self.wake_ups = WakeUps(connection, plan.queues, plan.worker, lambda: taker.call_soon(self._woken))

    def _woken(self) -> None:
        self._waits = False

    def waits(self, idle: bool) -> bool:
        """Whether a wake-up is awaited."""
        return self._waits

    def talk(self, reports: Sequence[Report], wanted: int, free: int) -> None:
        """Report the jobs that have ended, and pop up to `wanted` ones; `free` could begin at once."""
        if wanted > 0:
            self._report_and_pop(reports, wanted, free > 0)
        elif reports:
            found = self._connection.execute_many([op for op, _ in reports])
            for (op, attempts), reply in zip(reports, found, strict=True):
                self._taker.apply(op, attempts, reply)

    def _report_and_pop(self, reports: Sequence[Report], wanted: int, idle: bool) -> None:
        pop = self._plan.pop(min(wanted, 1000), idle)
        sent = runtime.monotonic()
        both = joined(reports[0][0], pop) if len(reports) == 1 and not self._apart else None
        if both is not None:
            (reply,) = self._connection.execute_many([both])
            self._apart = is_error(reply)  # a full server takes no pop, but a report alone
            state = reply.state if isinstance(reply, replies.CompletedAndPopped) else reply
            self._taker.apply(*reports[0], state)
            if isinstance(reply, replies.CompletedAndPopped):
                self._accept(reply.jobs, sent, idle)
            return
        *reported, popped = self._connection.execute_many([*(op for op, _ in reports), pop])
        for (op, attempts), reply in zip(reports, reported, strict=True):
            self._taker.apply(op, attempts, reply)
        if is_error(popped):
            self._taker.pause()
        else:
            self._apart = False
            self._accept(popped, sent, idle)

    def _accept(self, jobs: Sequence[replies.Job], sent: float, idle: bool) -> None:
        """Hand over jobs; if there are none and a slot is free, request a wake-up."""
        self._taker.accept(jobs, sent, self._connection.tried_at)
        if not jobs and idle:
            self._waits = True
            self.wake_ups.request()

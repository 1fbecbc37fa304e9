"""Renews the leases of all jobs that the worker holds, in a thread of its own: a job that computes keeps its lock.

Each is renewed when a third of it has passed, so one renewal may be lost. A process that stands still as a whole renews
nothing, and rightly loses its jobs. The server's word of a lease that was lost, or a job that was revoked, goes to the
worker; so does a job's running for longer than its timeout, after which no renewal helps.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from qmodel.contract import replies
from qmodel.contract.operations import Heartbeat
from qmodel.errors import ConnectError, RefusedError
from qmodel.worker.attempts import Abort, Attempt
from qmodel.worker.connection import Line

log = logging.getLogger("qmodel.worker")

LONGEST: Final = 5.0
"""Seconds between two looks, at most."""

SHORTEST: Final = 0.01

Told = Callable[[Attempt, Abort], None]


class Renewer:
    """Keeps the leases of attempts; `told` is called, in its thread, for each that must not go on."""

    def __init__(self, line: Line, told: Told) -> None:
        self._line = line
        self._told = told
        self._held: dict[int, Attempt] = {}
        self._next = 0.0
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="qmodel-renewer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def keep(self, attempt: Attempt) -> None:
        """Renew a lease from now on."""
        self._held[attempt.token] = attempt
        due = attempt.renew_at if attempt.limit is None else min(attempt.renew_at, attempt.limit)
        if due < self._next:
            self._wake.set()

    def drop(self, attempt: Attempt) -> None:
        """Renew it no more."""
        self._held.pop(attempt.token, None)

    def close(self) -> None:
        """End."""
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            now = time.monotonic()
            held = list(self._held.values())
            for attempt in held:
                if attempt.limit is not None and now >= attempt.limit:
                    attempt.limit = None
                    self._told(attempt, _too_long(attempt))
            try:
                self._renew([attempt for attempt in held if now >= attempt.renew_at])
            except Exception:  # without renewals all jobs would be lost: whatever it is, go on
                log.exception("Leases were not renewed; that is tried again.")
                time.sleep(1.0)
            self._sleep()

    def _sleep(self) -> None:
        """Sleep until the next is due; one that comes meanwhile and is due before wakes us."""
        self._wake.clear()
        self._next = time.monotonic() + LONGEST
        for attempt in list(self._held.values()):
            due = attempt.renew_at if attempt.limit is None else min(attempt.renew_at, attempt.limit)
            self._next = min(self._next, due)
        if not self._closed:
            self._wake.wait(max(self._next - time.monotonic(), SHORTEST))

    def _renew(self, due: list[Attempt]) -> None:
        if not due:
            return
        sent = time.monotonic()
        try:
            said = self._line.client.execute_many([Heartbeat(one.jid, one.token) for one in due])
        except ConnectError as error:
            self._line.away(error)
            for one in due:
                one.renew_at = time.monotonic() + min(one.lease / 10, 1.0)
            return
        for one, reply in zip(due, said, strict=True):
            self._hear(one, reply, sent)

    def _hear(self, attempt: Attempt, reply: object, sent: float) -> None:
        if isinstance(reply, replies.Lease):
            attempt.renewed(reply.expires_at, sent)
            if reply.revoked and attempt.aborted is None:
                self._told(attempt, Abort("revoked", "It was revoked."))
        elif isinstance(reply, RefusedError) and attempt.token in self._held:
            self.drop(attempt)
            self._told(attempt, Abort("lost", reply.sentence))


def _too_long(attempt: Attempt) -> Abort:
    seconds = (attempt.job.timeout_ms or 0) / 1000
    return Abort("timeout", f"It ran for longer than its timeout of {seconds:g} s.")

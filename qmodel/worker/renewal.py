"""Renew the leases of all jobs that the worker holds, in a separate thread: a job that computes keeps its lease.

A lease is renewed when a third of it has passed, so one renewal may be lost. A process that hangs as a whole renews
nothing, and rightly loses its jobs. The worker is notified of lost leases, of revoked jobs, and of jobs that exceed
their timeout, which no renewal extends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from qmodel import runtime
from qmodel.contract import replies
from qmodel.contract.operations import Heartbeat
from qmodel.errors import ConnectError, RefusedError
from qmodel.present.durations import format_duration
from qmodel.worker.attempt import Abort, Attempt, Key
from qmodel.worker.connection import Connection

log = logging.getLogger("qmodel.worker")

LONGEST: Final = 5.0
"""Maximum seconds between two rounds."""

SHORTEST: Final = 0.01

OnAbort = Callable[[Attempt, Abort], None]


class Renewer:
    """Renews the leases of attempts; calls `on_abort`, in its thread, for each attempt that must be aborted."""

    def __init__(self, connection: Connection, on_abort: OnAbort) -> None:
        self._connection = connection
        self._on_abort = on_abort
        self._held: dict[Key, Attempt] = {}
        self._next = 0.0
        self._wake = runtime.Event()
        self._closed = False
        self._thread = runtime.Thread(target=self._run, name="qmodel-renewer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def keep(self, attempt: Attempt) -> None:
        """Add an attempt whose lease is to be renewed."""
        self._held[attempt.key] = attempt
        due = attempt.renew_at if attempt.limit is None else min(attempt.renew_at, attempt.limit)
        if due < self._next:
            self._wake.set()

    def drop(self, attempt: Attempt) -> None:
        """Remove an attempt."""
        self._held.pop(attempt.key, None)

    def close(self) -> None:
        """Stop renewing."""
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            now = runtime.monotonic()
            held = list(self._held.values())
            for attempt in held:
                if attempt.limit is not None and now >= attempt.limit:
                    attempt.limit = None
                    self._on_abort(attempt, _timed_out(attempt))
            try:
                self._renew([attempt for attempt in held if now >= attempt.renew_at])
            except Exception:  # without renewals all jobs would be lost: continue after any error
                log.exception("Renewing leases failed; it will be tried again.")
                runtime.sleep(1.0)
            self._sleep()

    def _sleep(self) -> None:
        """Sleep until the next renewal is due; a new attempt that is due earlier wakes the thread."""
        self._wake.clear()
        self._next = runtime.monotonic() + LONGEST
        for attempt in list(self._held.values()):
            due = attempt.renew_at if attempt.limit is None else min(attempt.renew_at, attempt.limit)
            self._next = min(self._next, due)
        if not self._closed:
            self._wake.wait(max(self._next - runtime.monotonic(), SHORTEST))

    def _renew(self, due: list[Attempt]) -> None:
        if not due:
            return
        sent = runtime.monotonic()
        try:
            said: list[Any] = self._connection.renew([Heartbeat(one.jid, one.token) for one in due])
        except ConnectError as error:
            self._connection.log_outage(error)
            said = [error] * len(due)
        for one, reply in zip(due, said, strict=True):
            self._apply(one, reply, sent)

    def _apply(self, attempt: Attempt, reply: object, sent: float) -> None:
        if isinstance(reply, replies.Lease):
            attempt.renewed(reply.expires_at, sent)
            if reply.revoked and attempt.aborted is None:
                self._on_abort(attempt, Abort("revoked", "It was revoked."))
        elif isinstance(reply, ConnectError):
            attempt.renew_at = runtime.monotonic() + min(attempt.lease / 10, 1.0)
        elif isinstance(reply, RefusedError) and attempt.key in self._held:
            self.drop(attempt)
            self._on_abort(attempt, Abort("lost", reply.sentence))


def _timed_out(attempt: Attempt) -> Abort:
    timeout = format_duration(attempt.job.timeout_ms or 0)
    return Abort("timeout", f"It ran for longer than its timeout of {timeout}.")

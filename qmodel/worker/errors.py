"""Errors of attempts that the job's code did not raise, and errors of workers."""

from __future__ import annotations

from qmodel.errors import QmodelError


class TimedOut(Exception):
    """A job ran for longer than its timeout."""


class Killed(Exception):
    """The process of a job was killed, or exited before the job had ended."""


class ForkServerGone(QmodelError):
    """The fork server of a worker was killed; only a new worker can start another one."""

    def __init__(self) -> None:
        super().__init__("The fork server of this worker is gone, so the worker stops too. Start it again.")

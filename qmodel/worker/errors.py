"""What goes wrong with attempts that is not their jobs' doing, and with workers."""

from __future__ import annotations

from qmodel.errors import QmodelError


class TimedOut(Exception):
    """A job ran for longer than its timeout."""


class Killed(Exception):
    """The process of a job was killed, or ended by itself before the job had."""


class ZygoteGone(QmodelError):
    """The process that forks for a worker was killed; only a new worker can have another."""

    def __init__(self) -> None:
        super().__init__("The process that forks for this worker is gone, so it ends too. Start it anew.")

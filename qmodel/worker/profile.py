"""The profile of a worker: what `qmodel/client/profiles.py` shows of it to others."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path

from qmodel import runtime
from qmodel.client import profiles
from qmodel.client.profiles import Profile
from qmodel.client.sync import Client
from qmodel.errors import RefusedError
from qmodel.version import __version__
from qmodel.worker.settings import Settings

STATM = Path("/proc/self/statm")


def memory() -> int:
    """Give the resident memory of this process in bytes; where the system does not tell, the most that it ever had."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


class Profiler:
    """Writes the profile of a worker, again and again, and deletes those of dead workers when it begins."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        self._settings = settings
        self._started_at = runtime.time_ns() // 1_000_000
        self._next = 0.0

    def renew(self, client: Client) -> None:
        """Write the profile if its time has come. A refusal, as of the thousand-and-first profile, is no concern."""
        if runtime.monotonic() < self._next:
            return
        begins, self._next = not self._next, runtime.monotonic() + profiles.RENEWED_SECONDS
        now = runtime.time_ns() // 1_000_000
        if begins:
            dead = profiles.stale(profiles.read(client.execute(profiles.asked())), now)
            client.execute_many(profiles.deleted(dead))
        try:
            client.execute(profiles.written(self._name, self._profile(now)))
        except RefusedError:
            return

    def _profile(self, now: int) -> Profile:
        settings = self._settings
        return Profile(
            host=os.uname().nodename,
            pid=os.getpid(),
            version=__version__,
            python=platform.python_version(),
            runner=settings.runner,
            concurrency=settings.concurrency,
            memory=memory(),
            started_at=self._started_at,
            said_at=now,
            queue_count=len(settings.queues),
            queues=settings.queues,
        )

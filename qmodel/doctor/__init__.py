"""What `qmodel doctor` and the pages examine: a list of checks, each of which says OK, WARN or FAIL, and what to do.

A check is a function that yields findings; it is in `CHECKS`, and is asked in that order. One that raises is itself a
finding. What a backend noticed by itself when it connected stands in its `warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.doctor import environment, jobs
from qmodel.doctor import journal as recorded
from qmodel.doctor.environment import invariants
from qmodel.doctor.findings import FAIL, OK, WARN, Asked, Check, Finding
from qmodel.errors import ConnectError

__all__ = ["BEFORE", "CHECKS", "FAIL", "OK", "WARN", "Asked", "Check", "Finding", "examine", "invariants"]

BEFORE: tuple[Check, ...] = (environment.python, environment.packages, environment.url)
CHECKS: tuple[Check, ...] = (
    environment.reachable,
    environment.clock,
    environment.server,
    environment.memory,
    recorded.journal,
    jobs.queues,
    jobs.recurring,
    jobs.failures,
    jobs.workers,
    invariants,
)
"""Those that need the backend; they are passed over when it cannot be reached."""


def examine(at: Asked, checks: tuple[Check, ...] | None = None) -> Iterator[Finding]:
    """Go through all checks, or of those that need the backend only through some."""
    for check in BEFORE:
        yield from check(at)
    for check in CHECKS if checks is None else checks:
        try:
            yield from check(at)
        except ConnectError as error:
            yield Finding(FAIL, error.sentence, error.next_step)
            return
        except Exception as error:
            what = f"the check '{check.__name__}' broke: {type(error).__name__}: {error}"
            yield Finding(FAIL, what, "Please report this.")

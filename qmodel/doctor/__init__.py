"""The checks of `qmodel doctor` and of the web pages. Each check yields findings: OK, WARN or FAIL, and what to do;
or SKIP for what it did not check, and why.

A check is a function in `CHECKS`; the checks run in that order. An exception in a check becomes a finding. The problems
that a backend noticed when it connected are in its `warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.doctor import copies, damage, environment, jobs, shards
from qmodel.doctor import journal as recorded
from qmodel.doctor.environment import invariants
from qmodel.doctor.findings import FAIL, OK, SKIP, WARN, Asked, Check, Finding
from qmodel.errors import ConnectError

__all__ = ["BEFORE", "CHECKS", "FAIL", "OK", "SKIP", "WARN", "Asked", "Check", "Finding", "examine", "invariants"]

BEFORE: tuple[Check, ...] = (environment.python, environment.packages, environment.url)


def _spread(at: Asked) -> Iterator[Finding]:
    if shards.is_deployment(at):
        yield from shards.spread(at)


CHECKS: tuple[Check, ...] = (
    environment.reachable,
    _spread,
    environment.clock,
    environment.server,
    environment.memory,
    copies.copies,
    damage.damage,
    recorded.journal,
    jobs.queues,
    jobs.recurring,
    jobs.failures,
    jobs.workers,
    invariants,
)
"""The checks that need the backend; they are skipped when it cannot be reached."""


BY_SHARD: frozenset[Check] = frozenset((damage.damage, recorded.journal, invariants))
BY_NODE: frozenset[Check] = frozenset((environment.clock, environment.server, environment.memory, copies.copies))
"""The checks that a deployment needs for each shard, and for each node."""


def _for(at: Asked, check: Check) -> Check:
    """Give the form of a check for the backend."""
    if check not in BY_SHARD | BY_NODE or not shards.is_deployment(at):
        return check
    return shards.in_each_shard(check) if check in BY_SHARD else shards.on_each_node(check)


def examine(at: Asked, checks: tuple[Check, ...] | None = None) -> Iterator[Finding]:
    """Run all checks; `checks` replaces those that need the backend."""
    for check in BEFORE:
        yield from check(at)
    for check in CHECKS if checks is None else checks:
        try:
            yield from _for(at, check)(at)
        except ConnectError as error:
            yield Finding(FAIL, error.sentence, error.next_step)
            return
        except Exception as error:
            what = f"the check '{check.__name__}' failed with an error: {type(error).__name__}: {error}"
            yield Finding(FAIL, what, "Please report this.")

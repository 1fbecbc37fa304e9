"""A job's history: its stages in order, the first and the newest up to max-job-history.

It is also where the outcome of a lease is remembered: the stage that ended it carries its token, so a resend of the
same call is answered from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.state import config
from qmodel.state.store import Store

if TYPE_CHECKING:
    from qmodel.state.jobs import Job

LEAST = 4
"""The smallest max-job-history: below it nothing needs to be looked up."""


def add(store: Store, now: int, job: Job, what: str, *facts: str | int) -> None:
    """Append a stage."""
    history = job.history
    history.append((what, now, facts))
    if len(history) > LEAST:
        most = config.value(store, "max-job-history")
        if len(history) > most:
            del history[1 : len(history) - most + 1]


def outcome(job: Job, token: int, what: str) -> str | None:
    """The fact beside the token in the stage by which this kind of call ended that lease, if it did."""
    for stage in reversed(job.history):
        if stage[0] == what and stage[2][0] == token:
            return str(stage[2][1])
    return None

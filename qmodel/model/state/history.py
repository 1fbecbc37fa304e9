"""A job's history: its stages in order, the first one and the newest, up to max-job-history.

It also remembers the outcome of a lease: the stage that ended the lease carries its token, so a repeated call is
answered from here.

All stages of a job are one flat list (what, at, facts, what, at, facts, ...): with a tuple for each, Python's garbage
collector would have twice as much to examine for as long as the job is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.contract.replies import WIDTH, Kept
from qmodel.model.state import config
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

FEW = WIDTH * 4
"""The fields of four stages, the least max-job-history: up to this length the option need not be read."""


def add(store: Store, now: int, job: Job, what: str, *facts: str | int) -> None:
    """Append a stage."""
    history = job.history
    history += what, now, facts
    if len(history) > FEW:
        most = WIDTH * config.value(store, "max-job-history")
        if len(history) > most:
            del history[WIDTH : WIDTH + len(history) - most]


BRIEF = 1024
"""The bytes of a message that a stage keeps."""


def brief(message: str) -> str:
    """The part of a message that a stage keeps: its end, where a traceback names its error."""
    encoded = message.encode()
    return message if len(encoded) <= BRIEF else encoded[-BRIEF:].decode(errors="ignore")


def stages(job: Job) -> Iterator[Kept]:
    """The stages, oldest first."""
    fields = iter(job.history)
    return zip(fields, fields, fields)  # noqa: B905 (`strict` would take twice as long)


def outcome(job: Job, token: int, what: str) -> str | None:
    """The fact next to the token in the stage that ended this lease by this kind of call, or None."""
    found = None
    for stage, _, facts in stages(job):
        if stage == what and facts[0] == token:
            found = str(facts[1])
    return found

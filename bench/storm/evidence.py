"""What is known at the end of a round: what clients and workers saw, and what the server says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from qmodel.contract.events import Event
from qmodel.contract.routing import Layout


class Plan(NamedTuple):
    """A job as it was drawn: its queue, its throttle, its concurrency key, and the job that it waits for."""

    queue: str
    throttle: str | None
    ordered: str | None
    after: str | None = None


class Acknowledged(NamedTuple):
    """A put whose reply arrived: the job that the reply names, when, whether replicas had confirmed it, and the seconds
    from the first time that it was sent.
    """

    jid: str
    at: float
    confirmed: bool
    took: float = 0.0


class Error(NamedTuple):
    """An exception that a client raised."""

    at: float
    who: str
    code: str
    text: str


class Note(NamedTuple):
    """A line of a worker's notes: `started` and `acknowledged`, a job and the token of its lease."""

    what: str
    jid: str
    token: str
    pid: int
    at: float
    confirmed: bool


class Window(NamedTuple):
    """A time in which a fault was at work, and what this declares: the codes of errors, and losses."""

    kind: str
    begins: float
    ends: float
    allowed: frozenset[str] = frozenset()
    loses: str = ""
    """Why what was acknowledged in this time may be lost; empty: it may not."""
    loses_confirmed: bool = False
    """Whether this holds for what replicas had confirmed."""
    away: float = 0.0
    """The seconds for which the servers themselves let calls wait: until another node is the master."""


@dataclass(frozen=True)
class Evidence:
    """The material of the oracles."""

    plans: dict[str, Plan]
    limits: dict[str, int]
    """The concurrency of each throttle; those of queues are called `queue/<name>`."""
    acknowledged: Sequence[Acknowledged]
    errors: Sequence[Error]
    notes: Sequence[Note]
    windows: Sequence[Window]
    jobs: frozenset[str]
    """The ids of all jobs on the server at the end."""
    events: Sequence[Event]
    broken: Sequence[str]
    """Invariants that the final state breaks."""
    differences: Sequence[str]
    """Differences in the audit of the journal, and of the state after it."""
    crashes: Sequence[str] = field(default=())
    """Workers that ended by themselves, or logged a traceback; what did not come."""
    layout: Layout | None = None
    """The layout of the deployment; of one namespace there is none."""


def read_notes(path: Path, confirmed: bool) -> Iterable[Note]:
    """Read a worker's notes. The last line may be torn."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) == 5 and words[0] != "ready":
            yield Note(words[0], words[1], words[2], int(words[3]), float(words[4]), confirmed)

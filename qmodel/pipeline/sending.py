"""Puts are sent in many to a round trip, and may all be sent again (`qmodel.pipeline.writing`).

Jobs are put one by one, each known by its id and the run's request: a step that puts several is known as a whole, and
with one job that the run has put already all others in it would be passed over. Sub-requests are added a hundred in a
step, for a request knows each of them; a hundred keep the server busy for some milliseconds, and a thousand would let
others wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from qmodel import operations as ops
from qmodel.client import Client
from qmodel.errors import QmodelError, RefusedError

DEPTH = 500
"""How many jobs are on their way in one round trip."""

STEP = 100
"""How many sub-requests are added in a step."""


class Sent(NamedTuple):
    """How many rows are jobs now, and how many of them this very call made so, where that is known."""

    rows: int
    new: int | None


class RowRefused(QmodelError):
    """The engine refused a row: which, and why. Rows before it are jobs already; the write may be tried again."""

    def __init__(self, jid: str, why: str) -> None:
        super().__init__(jid, why)
        self.jid = jid
        self.why = why

    def __str__(self) -> str:
        return f"The row of job {self.jid} was refused: {self.why}"


def put(client: Client, puts: Iterable[ops.Put]) -> Sent:
    """Put jobs of which each has its request. Raises RowRefused at the first that is refused."""
    rows = 0
    for some in _parts(puts, DEPTH):
        for op, reply in zip(some, client.execute_many(some), strict=True):
            if isinstance(reply, RefusedError):
                raise RowRefused(op.jid, str(reply))
        rows += len(some)
    return Sent(rows, None)


def add(client: Client, request: str, puts: Iterable[ops.Put]) -> Sent:
    """Add sub-requests to an open request. Raises RowRefused for a step that has one that is refused."""
    rows = new = 0
    for some in _parts(puts, DEPTH):
        steps = [tuple({op.jid: op for op in step}.values()) for step in _parts(some, STEP)]
        replies = client.execute_many([ops.RequestAdd(request, step) for step in steps])
        for step, reply in zip(steps, replies, strict=True):
            if isinstance(reply, RefusedError):
                raise RowRefused(getattr(reply, "jid", step[0].jid), str(reply))
            new += reply
        rows += len(some)
    return Sent(rows, new)


def _parts(puts: Iterable[ops.Put], count: int) -> Iterator[Sequence[ops.Put]]:
    each = iter(puts)
    while some := list(islice(each, count)):
        yield some

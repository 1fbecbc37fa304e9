"""Puts are sent in many to a round trip, and may all be sent again (`qmodel.pipeline.jobs.write`).

A hundred are one step, which passes over what is there already: jobs by their ids (`put_new`), sub-requests by what
their request knows (`request_add`). A hundred keep the server busy for some milliseconds, and a thousand would let
others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.errors import QmodelError, RefusedError

DEPTH = 1000
"""How many jobs are on their way in one round trip."""

STEP = 100
"""How many of them are put in a step."""

Step = Callable[[tuple[ops.Put, ...]], ops.PutNew | ops.RequestAdd]

_UnderWay = tuple[Sequence[tuple[ops.Put, ...]], Future[list[Any]]]


class Sent(NamedTuple):
    """How many rows are jobs now, and how many of them this very call made so."""

    rows: int
    new: int


class RowRefused(QmodelError):
    """The engine refused a row: which, and why. Those before it are jobs already, and some after it; try again."""

    def __init__(self, jid: str, why: str) -> None:
        super().__init__(jid, why)
        self.jid = jid
        self.why = why

    def __str__(self) -> str:
        return f"The row of job {self.jid} was refused: {self.why}"


def put(client: Client, puts: Iterable[ops.Put]) -> Sent:
    """Put jobs whose ids are free. Raises RowRefused at the first that is refused."""
    return _send(client, puts, ops.PutNew)


def add(client: Client, request: str, puts: Iterable[ops.Put]) -> Sent:
    """Add sub-requests to an open request. Raises RowRefused at the first that is refused."""
    return _send(client, puts, lambda step: ops.RequestAdd(request, step))


def _send(client: Client, puts: Iterable[ops.Put], make: Step) -> Sent:
    """One round trip is on its way while the next one is made ready, so that the server has always something to do.

    There is one line, so rows are put in their order.
    """
    rows = new = 0
    under_way: _UnderWay | None = None
    with ThreadPoolExecutor(1, "qmodel-line") as line:
        for some in _parts(puts, DEPTH):
            steps = [tuple({op.jid: op for op in step}.values()) for step in _parts(some, STEP)]
            before, under_way = under_way, (steps, line.submit(client.execute_many, list(map(make, steps))))
            rows += len(some)
            new += _ended(client, before, make)
        new += _ended(client, under_way, make)
    return Sent(rows, new)


def _ended(client: Client, under_way: _UnderWay | None, make: Step) -> int:
    """How many jobs a round trip made, when it has come back."""
    new = 0
    steps, replies = under_way or ((), None)
    for step, reply in zip(steps, replies.result() if replies else (), strict=True):
        if isinstance(reply, RefusedError):
            _refuse(client, step, make, reply)
        else:
            new += reply
    return new


def _refuse(client: Client, step: tuple[ops.Put, ...], make: Step, refused: RefusedError) -> None:
    """Put those of a refused step that stand before the one that is refused, and name it."""
    for op in step:
        try:
            client.execute(make((op,)))
        except RefusedError as why:
            raise RowRefused(op.jid, str(why)) from None
    raise RowRefused(step[0].jid, str(refused))  # it was refused together with the others only


def _parts(puts: Iterable[ops.Put], count: int) -> Iterator[Sequence[ops.Put]]:
    each = iter(puts)
    while some := list(islice(each, count)):
        yield some

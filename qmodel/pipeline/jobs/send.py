"""Send many puts in few round trips. Every put may be sent again (see `qmodel.pipeline.jobs.write`).

One step puts a hundred jobs and skips those that exist: `put_new` knows jobs by their ids, `request_add` knows the
sub-requests of its request. A hundred puts keep the server busy for some milliseconds. A thousand in one step would
make other clients wait.
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
"""The number of jobs in one round trip."""

STEP = 100
"""The number of jobs in one step of the server."""

Step = Callable[[tuple[ops.Put, ...]], ops.PutNew | ops.RequestAdd]

_UnderWay = tuple[Sequence[tuple[ops.Put, ...]], Future[list[Any]]]


class Sent(NamedTuple):
    """The number of rows that are jobs now, and the number of jobs that this call created."""

    rows: int
    new: int


class RowRefused(QmodelError):
    """Raised when the engine refuses a row. Earlier rows are jobs already, and some later ones; send all again."""

    def __init__(self, jid: str, why: str) -> None:
        super().__init__(jid, why)
        self.jid = jid
        self.why = why

    def __str__(self) -> str:
        return f"The row of job {self.jid} was refused: {self.why}"


def put(client: Client, puts: Iterable[ops.Put]) -> Sent:
    """Put jobs that do not exist yet. Raises RowRefused at the first row that is refused."""
    return _send(client, puts, ops.PutNew)


def add(client: Client, request: str, puts: Iterable[ops.Put]) -> Sent:
    """Add sub-requests to an open request. Raises RowRefused at the first row that is refused."""
    return _send(client, puts, lambda step: ops.RequestAdd(request, step))


def _send(client: Client, puts: Iterable[ops.Put], make: Step) -> Sent:
    """Prepare the next round trip while one is under way, so that the server is always busy.

    One thread sends them, so rows are put in their order.
    """
    rows = new = 0
    under_way: _UnderWay | None = None
    with ThreadPoolExecutor(1, "qmodel-line") as line:
        for some in _batches(puts, DEPTH):
            steps = [tuple({op.jid: op for op in step}.values()) for step in _batches(some, STEP)]
            before, under_way = under_way, (steps, line.submit(client.execute_many, list(map(make, steps))))
            rows += len(some)
            new += _created(client, before, make)
        new += _created(client, under_way, make)
    return Sent(rows, new)


def _created(client: Client, under_way: _UnderWay | None, make: Step) -> int:
    """Wait for a round trip; give the number of jobs that it created."""
    new = 0
    steps, replies = under_way or ((), None)
    for step, reply in zip(steps, replies.result() if replies else (), strict=True):
        if isinstance(reply, RefusedError):
            _refuse(client, step, make, reply)
        else:
            new += reply
    return new


def _refuse(client: Client, step: tuple[ops.Put, ...], make: Step, refused: RefusedError) -> None:
    """Put the jobs of a refused step one by one, to find and name the refused one."""
    for op in step:
        try:
            client.execute(make((op,)))
        except RefusedError as why:
            raise RowRefused(op.jid, str(why)) from None
    raise RowRefused(step[0].jid, str(refused))  # it is refused only together with the others


def _batches(puts: Iterable[ops.Put], count: int) -> Iterator[Sequence[ops.Put]]:
    each = iter(puts)
    while some := list(islice(each, count)):
        yield some

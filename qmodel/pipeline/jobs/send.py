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
from qmodel.contract import replies
from qmodel.errors import QmodelError, RefusedError

DEPTH = 1000
"""The number of jobs in one round trip."""

STEP = 100
"""The number of jobs in one step of the server."""

Step = Callable[[tuple[ops.Put, ...]], ops.PutNew | ops.RequestAdd]
Check = Callable[[Client, tuple[ops.Put, ...]], None]

_UnderWay = tuple[Sequence[tuple[ops.Put, ...]], Future[list[Any]]]


class Sent(NamedTuple):
    """The number of rows that are jobs now, and the number of jobs that this call created."""

    rows: int
    new: int

    @property
    def known(self) -> int:
        """Give the number of rows that were jobs already."""
        return self.rows - self.new


class RowRefused(QmodelError):
    """Raised when the engine refuses a row. Earlier rows are jobs already, and some later ones; send all again."""

    def __init__(self, jid: str, why: str) -> None:
        super().__init__(jid, why)
        self.jid = jid
        self.why = why

    def __str__(self) -> str:
        return f"The row of job {self.jid} was refused: {self.why}"


def put(client: Client, puts: Iterable[ops.Put], *, are_digests: bool = False) -> Sent:
    """Put jobs that do not exist yet. Raises RowRefused at the first row that is refused.

    A row with the id of a job of another queue or type is refused, too. If all ids are digests, no job has another's
    id, and known jobs are not read.
    """
    return _send(client, puts, ops.PutNew, None if are_digests else _check_known)


def add(client: Client, request: str, puts: Iterable[ops.Put]) -> Sent:
    """Add sub-requests to an open request. Raises RowRefused at the first row that is refused."""
    return _send(client, puts, lambda step: ops.RequestAdd(request, step), _check_type)


def _send(client: Client, puts: Iterable[ops.Put], make: Step, check: Check | None) -> Sent:
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
            new += _created(client, before, make, check)
        new += _created(client, under_way, make, check)
    return Sent(rows, new)


def _created(client: Client, under_way: _UnderWay | None, make: Step, check: Check | None) -> int:
    """Wait for a round trip; give the number of jobs that it created."""
    new = 0
    steps, replies = under_way or ((), None)
    for step, reply in zip(steps, replies.result() if replies else (), strict=True):
        new += _taken(client, step, make, check, reply)
    return new


def _taken(
    client: Client, step: tuple[ops.Put, ...], make: Step, check: Check | None, reply: int | RefusedError
) -> int:
    """Give the number of jobs that a step created. One that was refused is put in halves: it may be too large for one
    call; otherwise that finds the row that is refused.
    """
    if not isinstance(reply, RefusedError):
        if check and reply < len(step):
            check(client, step)
        return reply
    if len(step) == 1:
        raise RowRefused(step[0].jid, str(reply))
    half = len(step) // 2
    return sum(_taken(client, part, make, check, _asked(client, make(part))) for part in (step[:half], step[half:]))


def _asked(client: Client, op: ops.PutNew | ops.RequestAdd) -> int | RefusedError:
    try:
        return int(client.execute(op))
    except RefusedError as refused:
        return refused


def _known(client: Client, step: tuple[ops.Put, ...]) -> Iterator[tuple[ops.Put, replies.Job]]:
    """Give the jobs that have the ids of rows; none, if another job holds the deduplication key."""
    found = client.multiget([op.jid for op in step])
    jobs = {job.jid: job for job in found}
    return ((op, jobs[op.jid]) for op in step if op.jid in jobs)


def _check_type(client: Client, step: tuple[ops.Put, ...]) -> None:
    """Refuse a row with the id of a job of another type."""
    for op, job in _known(client, step):
        if job.klass != op.klass:
            raise RowRefused(op.jid, _otherwise(op, job))


def _check_known(client: Client, step: tuple[ops.Put, ...]) -> None:
    """Refuse a row with the id of a job of another type or queue.

    A job that moved on to another queue was put into the row's queue earlier, as its history says.
    """
    for op, job in _known(client, step):
        queues = {job.queue, *(str(stage.facts[0]) for stage in job.history if stage.what == "put")}
        if job.klass != op.klass or op.queue not in queues:
            raise RowRefused(op.jid, _otherwise(op, job))


def _otherwise(op: ops.Put, job: replies.Job) -> str:
    return (
        f"a job of type {job.klass} in queue {job.queue} has this id, and the row is a job of type {op.klass} for "
        f"queue {op.queue}. Give rows of different jobs different ids, or let idColumns make them."
    )


def _batches(puts: Iterable[ops.Put], count: int) -> Iterator[Sequence[ops.Put]]:
    each = iter(puts)
    while some := list(islice(each, count)):
        yield some

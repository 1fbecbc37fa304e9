"""The outbox: jobs that are written into a table with the business data, and put once that has committed.

A job that is put within a transaction is one too many if the transaction is rolled back, and one too few if the process
dies between the commit and the put. So the transaction writes a row for each job (`record`), and a relay puts what has
been committed, and then deletes the rows. If the relay dies in between, it sends the same jobs again: a row has the id
of its job, and a job that exists is not put again (`put_new`). So a row becomes one job, as long as jobs are kept
longer than the relay takes to delete its row. A row that the engine refuses stays, with the reason, and holds up no
other row.

`qmodel.integrations.sqlalchemy` and `qmodel.integrations.django_outbox` have the tables.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmodel import runtime
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, QmodelError, error_of
from qmodel.model.engine import fault
from qmodel.present.numbers import counted
from qmodel.wire import as_json

if TYPE_CHECKING:
    from qmodel.app import App

log = logging.getLogger("qmodel.integrations.outbox")

TOGETHER = 100
"""The rows of one round trip and one transaction."""

EVERY = 0.5
"""Seconds between two looks at the table."""

PATIENCE = 30.0
"""The most seconds between two tries while the server or the database cannot be reached."""


class Record(NamedTuple):
    """A row: the id of the job, and its put as JSON, as a line for `qmodel run`."""

    jid: str
    put: str


class Row(NamedTuple):
    """A row as the table has it."""

    id: int
    put: str


class Sent(NamedTuple):
    """What became of rows: which are jobs now, and why others were refused."""

    done: list[int]
    refused: dict[int, str]


class Moved(NamedTuple):
    """How many rows became jobs, and how many were refused."""

    done: int
    refused: int

    def __str__(self) -> str:
        return f"{counted(self.done, 'row')} became jobs, {self.refused:,} were refused."


def record(put: ops.Put) -> Record:
    """Make the row of a job, from `send.make(...)` or `queue.new(...)`. Raises BadArgument, as putting it would, and
    TypeError for what is no job to be put, such as one that was put already.
    """
    if not isinstance(put, ops.Put):
        raise TypeError(f"An outbox takes jobs that are still to be put, not {put!r}. Make one: send.make(...).")
    bad = fault(put)
    if bad is not None:
        raise error_of(Refusal("BAD_ARGUMENT", ("put", bad)))
    return Record(put.jid, as_json.call(0, put))


def send(client: Client, rows: Sequence[Row]) -> Sent:
    """Put the jobs of rows that do not exist yet. Raises ConnectError: then all rows are to be sent again."""
    done: list[int] = []
    refused: dict[int, str] = {}
    puts: dict[int, ops.Put] = {}
    for row in rows:
        try:
            puts[row.id] = _put_of(row)
        except (ValueError, RecursionError) as error:
            refused[row.id] = str(error)
    known = {}
    replies = client.execute_many([ops.PutNew((put,)) for put in puts.values()])
    for (id, put), reply in zip(puts.items(), replies, strict=True):
        if isinstance(reply, QmodelError):
            refused[id] = str(reply)
        else:
            done.append(id)
            if not reply:
                known[id] = put
    others = _others(client, known)
    return Sent([id for id in done if id not in others], {**refused, **others})


def _put_of(row: Row) -> ops.Put:
    """Read the put of a row. Raises ValueError for a text that is none."""
    _, put = as_json.read(row.put)
    if type(put) is not ops.Put:
        raise ValueError(f"not a put: {row.put[:100]!r}")
    return put


def _others(client: Client, known: Mapping[int, ops.Put]) -> dict[int, str]:
    """Find the rows that have the id of a job of another type: they would be lost. A relay that died sends a row twice,
    and then the job is of the same type.
    """
    if not known:
        return {}
    types = {job.jid: job.klass for job in client.multiget([put.jid for put in known.values()])}
    return {
        id: f"There is a job {put.jid} of another type, {types[put.jid]}. Give the row an id of its own."
        for id, put in known.items()
        if types.get(put.jid, put.klass) != put.klass
    }


class Relay:
    """Puts the jobs of committed rows, until it is stopped.

    `move` puts the jobs of some rows, oldest first, and deletes the rows. Errors that are `lost` mean that the database
    cannot be reached for now.
    """

    def __init__(self, move: Callable[[], Moved], every: float = EVERY, lost: tuple[type[Exception], ...] = ()) -> None:
        self._move, self._every = move, every
        self._lost: tuple[type[Exception], ...] = (ConnectError, *lost)
        self._stopped = runtime.Event()
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Relay until `end` or `stop` is called."""
        pause = self._every
        while not self._stopped.is_set():
            try:
                while any(moved := self._move()) and not self._stopped.is_set():
                    if moved.refused:
                        log.warning(
                            "%s of the outbox refused; the column `refused` says why.", counted(moved.refused, "row")
                        )
                pause = self._every
            except self._lost as error:
                pause = min(max(pause, EVERY) * 2, PATIENCE)
                log.warning("The outbox waits %.0f seconds and tries again: %s", pause, error)
            self._stopped.wait(pause)

    def run_until_signal(self) -> None:
        """Relay until SIGTERM or SIGINT ends the process, after the rows that are under way."""
        for name in (signal.SIGTERM, signal.SIGINT):  # this thread may hold the lock of the event just now
            signal.signal(name, lambda *_: runtime.Thread(target=self.end).start())
        self.run()

    def once(self) -> Moved:
        """Put the jobs of all rows that are there. Raises ConnectError, and errors of the database."""
        done = refused = 0
        while any(moved := self._move()):
            done, refused = done + moved.done, refused + moved.refused
        return Moved(done, refused)

    def end(self) -> None:
        """End after the rows that are under way, and do not wait."""
        self._stopped.set()

    def start(self) -> None:
        """Relay in a thread."""
        self._thread = runtime.Thread(target=self.run, name="qmodel-outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the rows that are under way, and wait for the thread."""
        self.end()
        if self._thread is not None:
            self._thread.join()


def attach(app: App, make: Callable[[], Relay]) -> None:
    """Let each worker of an app relay in a thread of its own, from its start to its end."""
    relays: list[Relay] = []

    def start(worker: object) -> None:
        relays.append(make())
        relays[-1].start()

    app.on("worker_start")(start)
    app.on("worker_stop")(lambda worker: relays.pop().stop())

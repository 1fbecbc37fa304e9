"""An outbox for SQLAlchemy: jobs are put in the transaction of the business data (`qmodel.integrations.outbox`).

outbox = Outbox(Base.metadata)

with Session(engine) as session, session.begin():
    session.add(order)
    outbox.put(session, send_receipt.make(order.id))

outbox.attach(app, engine)

Then the workers relay; `qmodel outbox --database URL` does the same without a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, Text, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.integrations.outbox import EVERY, TOGETHER, Moved, Relay, Row, attach, record, send

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from qmodel.app import App


class Session(Protocol):
    """A session or a connection."""

    def execute(self, statement: Any, parameters: Any, /) -> Any:
        """Execute a statement."""


class AsyncSession(Protocol):
    """A session or a connection of an event loop."""

    async def execute(self, statement: Any, parameters: Any, /) -> Any:
        """Execute a statement."""


class Outbox:
    """A table of jobs that are put once their transaction has committed.

    `metadata` is that of the application's tables, so that `create_all` and Alembic know the table too; `name` and
    `schema` say what the table is called.
    """

    def __init__(
        self, metadata: MetaData | None = None, name: str = "qmodel_outbox", schema: str | None = None
    ) -> None:
        self.table = Table(
            name,
            MetaData() if metadata is None else metadata,
            Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
            Column("jid", String(128), nullable=False),
            Column("put", Text(), nullable=False),
            Column("refused", Text(), nullable=True),
            schema=schema,
        )

    def put(self, session: Session, *jobs: ops.Put) -> list[str]:
        """Write jobs in the transaction of a session or connection; give their ids.

        A job comes from `send.make(...)` of a job type, or `new(...)` of a queue. A `delay` counts from the moment at
        which the relay puts the job; `at` says a moment. Raises BadArgument for an argument that no put may have.
        """
        rows = _rows(jobs)
        if rows:
            session.execute(insert(self.table), rows)
        return [row["jid"] for row in rows]

    async def aput(self, session: AsyncSession, *jobs: ops.Put) -> list[str]:
        """Do the same with a session or connection of an event loop."""
        rows = _rows(jobs)
        if rows:
            await session.execute(insert(self.table), rows)
        return [row["jid"] for row in rows]

    def move(self, engine: Engine, client: Client) -> Moved:
        """Put the jobs of at most a hundred committed rows, oldest first, and delete the rows.

        A row that the engine refuses keeps the reason in its column `refused`; set that to null to try again. Several
        relays share the rows where the database can skip locked ones. Raises ConnectError, and errors of the database.
        """
        table = self.table
        wanted = select(table.c.id, table.c.put).where(table.c.refused.is_(None)).order_by(table.c.id).limit(TOGETHER)
        with engine.begin() as connection:
            found = connection.execute(wanted.with_for_update(skip_locked=True)).all()
            sent = send(client, [Row(id, put) for id, put in found])
            for id, why in sent.refused.items():
                connection.execute(update(table).where(table.c.id == id).values(refused=why))
            if sent.done:
                connection.execute(delete(table).where(table.c.id.in_(sent.done)))
        return Moved(len(sent.done), len(sent.refused))

    def relay(self, engine: Engine, client: Client, every: float = EVERY) -> Relay:
        """Make a relay from a database to a client's jobs, which looks at the table every so many seconds."""
        return Relay(lambda: self.move(engine, client), every, (SQLAlchemyError,))

    def attach(self, app: App, engine: Engine, every: float = EVERY) -> None:
        """Let each worker of an app relay in a thread of its own, from its start to its end."""
        attach(app, lambda: self.relay(engine, app.client, every))


def _rows(jobs: tuple[ops.Put, ...]) -> list[dict[str, str]]:
    return [record(job)._asdict() for job in jobs]

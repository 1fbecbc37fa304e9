"""Write jobs in the transaction of a database of Django, and put those that have committed."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections, transaction

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.integrations.django_outbox.models import OutboxJob
from qmodel.integrations.outbox import EVERY, TOGETHER, Moved, Relay, Row, record, send


def put(*jobs: ops.Put, using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Write jobs in the transaction of a database; give their ids.

    A job comes from `send.make(...)` of a job type, or `new(...)` of a queue; a task writes itself when it is
    enqueued, if its backend has the option `outbox`. Raises BadArgument for an argument that no put may have.
    """
    rows = [OutboxJob(**record(job)._asdict()) for job in jobs]
    OutboxJob.objects.using(using).bulk_create(rows)
    return [row.jid for row in rows]


def move(client: Client, using: str = DEFAULT_DB_ALIAS) -> Moved:
    """Put the jobs of at most a hundred committed rows, oldest first, and delete the rows.

    A row that the engine refuses keeps the reason in its column `refused`; set that to null to try again. Several
    relays share the rows where the database can skip locked ones. Raises ConnectError, and errors of the database.
    """
    rows: Any = OutboxJob.objects.using(using)
    skips = connections[using].features.has_select_for_update_skip_locked
    with transaction.atomic(using):
        wanted = rows.select_for_update(skip_locked=skips).filter(refused=None).order_by("id")
        sent = send(client, [Row(row.id, row.put) for row in wanted[:TOGETHER]])
        for id, why in sent.refused.items():
            rows.filter(id=id).update(refused=why)
        rows.filter(id__in=sent.done).delete()
    return Moved(len(sent.done), len(sent.refused))


def relay(client: Client, using: str = DEFAULT_DB_ALIAS, every: float = EVERY) -> Relay:
    """Make a relay from a database to a client's jobs, which looks at the table every so many seconds."""

    def moved() -> Moved:
        try:
            return move(client, using)
        except (DatabaseError, InterfaceError):
            connections[using].close()  # the next look opens another one
            raise

    return Relay(moved, every, (DatabaseError, InterfaceError))

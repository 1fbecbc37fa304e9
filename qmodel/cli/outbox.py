"""`qmodel outbox`: put the jobs that transactions have written into a table of a database."""

from __future__ import annotations

import click

from qmodel.backends import without_password
from qmodel.cli.live import need
from qmodel.cli.session import common, session
from qmodel.errors import QmodelError
from qmodel.integrations.outbox import EVERY


@click.command("outbox")
@click.option("--database", required=True, metavar="URL", help="Of SQLAlchemy: postgresql+psycopg://host/shop, ...")
@click.option("--table", default="qmodel_outbox", show_default=True, help="The table of the outbox.")
@click.option("--schema", default=None, help="The schema of the table.")
@click.option(
    "--every",
    type=click.FloatRange(0, min_open=True),
    default=EVERY,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks at the table.",
)
@click.option("--once", is_flag=True, help="Put what is there, print how many rows were found, and end.")
def command(database: str, table: str, schema: str | None, every: float, once: bool) -> None:
    """Put the jobs that transactions have written into the table of an outbox, and delete the rows.

    Any number may run at once; a worker does the same with `outbox.attach(app, engine)`. A row that is refused stays
    in the table, with the reason in the column `refused`: exit code 1 with --once. docs/guides/outbox.md has more.

    \b
        qmodel outbox --database postgresql+psycopg://localhost/shop
        qmodel outbox --database sqlite:///shop.db --once
    """
    need("sqlalchemy", "sqlalchemy", "outbox")
    from sqlalchemy import create_engine
    from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

    from qmodel.integrations.sqlalchemy import Outbox

    outbox = Outbox(name=table, schema=schema)
    try:
        engine = create_engine(database)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        shown = without_password(database)
        raise QmodelError(f"The database {shown!r} cannot be used: {error}. Give a URL of SQLAlchemy.") from None
    at = session()
    if at.url_from == "the default":
        raise click.UsageError(
            f"No server is given, and jobs in {at.url} would be lost when this command ends. "
            "Set QMODEL_URL, or give --url redis://localhost:6379/0."
        )
    relay = outbox.relay(engine, at.client, every)
    if not once:
        relay.run_until_signal()
        return
    try:
        moved = relay.once()
    except DBAPIError as error:
        raise QmodelError(f"The database refuses: {error.orig}.") from None
    at.answer(moved._asdict()) if at.json else click.echo(moved)
    if moved.refused:
        click.get_current_context().exit(1)


common(command)

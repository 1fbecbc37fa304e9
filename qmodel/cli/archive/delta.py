"""`qmodel archive delta`: add all new events to a table of Delta Lake."""

from __future__ import annotations

import click

from qmodel.cli.live import need
from qmodel.cli.session import session
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted


@click.command("delta")
@click.argument("table", metavar="TABLE")
@click.option("--namespace", metavar="NAME", default="", help="The name in the table.  [default: the prefix]")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="The most events of a commit.  [default: 100000]")
def command(table: str, namespace: str, rows: int | None) -> None:
    """Add all new events to TABLE, a table of Delta Lake in a folder or at a URL.

    It may be killed and run again at any time: the position is part of each commit. Programs of Delta optimize and
    vacuum the table; an archive of qmodel's own (`qmodel archive run`) needs none.
    """
    need("deltalake", "delta", "archive delta")
    need("pyarrow", "delta", "archive delta")
    from qmodel.pipeline.archive.delta import ROWS, append

    at = session()
    if at.url.startswith("memory:"):
        raise QmodelError("This needs a server: say --url redis://localhost:6379/0")
    added = 0
    for one in append(at.url, table, namespace=namespace, rows=rows or ROWS):
        added += one.rows
        if at.json:
            at.answer(one._asdict())
        else:
            click.echo(f"{one.namespace} {counted(one.rows, 'event')}, up to {one.last:,}")
    if not added and not at.json:
        click.echo("There is no new event.")

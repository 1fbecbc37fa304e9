"""`qmodel archive delta`: add all new events to a table of Delta Lake."""

from __future__ import annotations

import click

from qmodel.cli.archive.options import ranges
from qmodel.cli.live import need
from qmodel.cli.session import session
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted


@click.command("delta")
@click.argument("table", metavar="TABLE")
@click.option("--namespace", metavar="NAME", default="", help="The name in the table.  [default: the prefix]")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="The most events of a commit.  [default: 100000]")
@click.option("--skip-gaps", is_flag=True, help="Leave out events that the server no longer keeps, and continue.")
def command(table: str, namespace: str, rows: int | None, skip_gaps: bool) -> None:
    """Add all new events to TABLE, a table of Delta Lake in a folder or at a URL.

    It may be killed and run again at any time: the position is part of each commit. If the server no longer keeps the
    next events, the exit code is 1; with --skip-gaps they are left out, and each commit says which. Programs of Delta
    optimize and vacuum the table; an archive of qmodel's own (`qmodel archive run`) needs none.
    """
    need("deltalake", "delta", "archive delta")
    need("pyarrow", "delta", "archive delta")
    from qmodel.pipeline.archive.delta import ROWS, append
    from qmodel.pipeline.events.gaps import EventsGone

    at = session()
    if at.url.startswith("memory:"):
        raise QmodelError("This needs a server: say --url redis://localhost:6379/0")
    done = False
    try:
        for one in append(at.url, table, namespace=namespace, rows=rows or ROWS, skip_gaps=skip_gaps):
            done = True
            if at.json:
                at.answer({**one._asdict(), "gaps": [list(gap) for gap in one.gaps]})
                continue
            click.echo(f"{one.namespace} {counted(one.rows, 'event')}, up to {one.last:,}")
            if one.gaps:
                click.echo(f"{one.namespace} left out, because they are gone: {ranges(one.gaps)}", err=True)
    except EventsGone as gone:
        raise QmodelError(
            f"Events {ranges(gone.gaps)} are gone from the server, and are not in the table. With --skip-gaps they are "
            f"left out. To prevent further gaps, run it more often, or let the server keep more events: "
            f"qmodel op config-set max-events 1000000"
        ) from None
    if not done and not at.json:
        click.echo("There is no new event.")

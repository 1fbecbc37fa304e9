"""`qmodel reconcile`: compare the figures of an archive with the engine's, on this machine."""

from __future__ import annotations

import click

from qmodel.cli import reconcile_options
from qmodel.cli.live import need
from qmodel.cli.session import common


@click.command("reconcile")
@click.argument("archive")
@click.option("--namespace", help="The archive's name of the namespace at --url.  [default: its prefix]")
@click.option(
    "--memory", default="", metavar="SIZE", help="The most memory DuckDB may use: 2GB.  [default: most of it]"
)
def command(archive: str, namespace: str | None, memory: str) -> None:
    """Compare the statistics that the engine keeps with those of its events, to the last bit.

    Both follow from the same transitions in different ways. A difference means that events or counts were lost or
    altered; then a table is shown, and the exit code is 1. ARCHIVE is a folder that `qmodel spark archive` fills; newer
    events are read from the server. Days that the engine no longer keeps (stats-history) are not compared.
    """
    need("duckdb", "duckdb", "reconcile")
    need("pyarrow", "duckdb", "reconcile")
    from qmodel.pipeline.statistics.local import DuckDB

    with DuckDB(memory) as engine:
        reconcile_options.answer(engine, archive, namespace)


common(command)

"""`qmodel statistics`: figures of an archive, on this machine."""

from __future__ import annotations

from typing import Any

import click

from qmodel.cli import figures
from qmodel.cli.live import need
from qmodel.cli.session import common


@click.command("statistics")
@figures.options
@click.option("--memory", default="", metavar="SIZE", help="The most memory it may use: 2GB.  [default: most of it]")
@click.option("--threads", default=0, type=click.IntRange(0), help="The most threads.  [default: one for each CPU]")
def command(memory: str, threads: int, **given: Any) -> None:
    """Show how long jobs waited and ran, and what failed, from an archive.

    By queue, klass, worker or tag, and day: count, mean, percentiles; failures by group; how many were completed in the
    busiest hour. ARCHIVE is a folder that `qmodel spark archive` fills. With --out what was counted is kept, and
    a next run, here or by `qmodel spark statistics`, counts what is new; the figures are there as Parquet, too.
    """
    need("duckdb", "duckdb", "statistics")
    need("pyarrow", "duckdb", "statistics")
    from qmodel.pipeline.statistics.local import DuckDB

    with DuckDB(memory, threads) as engine:
        figures.answer(engine, figures.asked(**given))


common(command)

"""`qmodel statistics`: show figures of an archive, on this machine."""

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

    By queue, job type, worker or tag, and day: count, mean, percentiles; failures by group; the completed jobs of the
    busiest hour. ARCHIVE is a folder that `qmodel spark archive` fills. With --out the counts are kept, and the next
    run, here or by `qmodel spark statistics`, counts only new events; the figures are written as Parquet, too.
    """
    need("duckdb", "duckdb", "statistics")
    need("pyarrow", "duckdb", "statistics")
    from qmodel.pipeline.statistics.local import DuckDB

    with DuckDB(memory, threads) as engine:
        figures.answer(engine, figures.asked(**given))


common(command)

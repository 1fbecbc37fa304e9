"""`qmodel statistics`: show figures of an archive."""

from __future__ import annotations

from typing import Any

import click

from qmodel.cli import figures
from qmodel.cli.engine import engine_options, started
from qmodel.cli.session import common


@click.command("statistics")
@figures.options
@engine_options
def command(on: str, memory: str, threads: int, **given: Any) -> None:
    """Show how long jobs waited and ran, and what failed, from an archive.

    By queue, job type, worker or tag, and day: count, mean, percentiles; failures by group; the completed jobs of the
    busiest hour. ARCHIVE is what `qmodel archive run` fills. With --out the counts are kept, and the next run counts
    only new events; the figures are written as Parquet, too.

    With --on spark, the same SQL answers for archives that are too large for one machine. All executors must see
    ARCHIVE, and the folder of --out.
    """
    with started("statistics", on, memory, threads) as engine:
        figures.answer(engine, figures.asked(**given))


common(command)

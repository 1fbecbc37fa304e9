"""`qmodel spark plan`: simulate the points of a grid, on executors."""

from __future__ import annotations

import time
from pathlib import Path

import click

from qmodel.cli import planned
from qmodel.cli.session import common, session
from qmodel.cli.spark.execute import reason, spark_session
from qmodel.errors import QmodelError


@click.command("plan")
@planned.options
@click.option("--tasks", type=click.IntRange(1), help="The number of tasks.  [default: Spark's]")
def command(file: Path, out: Path | None, picture: Path | None, metric: str, tasks: int | None) -> None:
    """Simulate all points of a grid, on Spark; show how long jobs wait at each, with confidence intervals.

    `qmodel plan new` writes a first grid. On one machine `qmodel plan run` costs less.
    """
    grid = planned.read(file, out, metric)
    spark = spark_session("plan")
    from qmodel.planning.spark import measurements, outcomes

    began = time.monotonic()
    try:
        found = outcomes(grid, measurements(spark, grid, tasks=tasks))
    except Exception as error:
        raise QmodelError(reason(error)) from None
    planned.answer(session(), grid, found, time.monotonic() - began, out, picture, metric)


common(command)

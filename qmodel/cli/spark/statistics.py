"""`qmodel spark statistics`: show figures of an archive, on Spark."""

from __future__ import annotations

from typing import Any

import click

from qmodel.cli import figures
from qmodel.cli.session import common
from qmodel.cli.spark.execute import spark_session


@click.command("statistics")
@figures.options
def command(**given: Any) -> None:
    """Show how long jobs waited and ran, and what failed, from an archive.

    The same as `qmodel statistics`, with the same SQL, for archives that are too large for one machine. All
    executors must see ARCHIVE, and the folder of --out.
    """
    spark = spark_session("statistics")
    from qmodel.pipeline.spark.statistics import Spark

    try:
        figures.answer(Spark(spark), figures.asked(**given))
    finally:
        spark.stop()


common(command)

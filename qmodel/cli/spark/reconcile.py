"""`qmodel spark reconcile`: compare the figures of an archive with the engine's, on Spark."""

from __future__ import annotations

import click

from qmodel.cli import reconcile_options
from qmodel.cli.session import common
from qmodel.cli.spark.execute import spark_session


@click.command("reconcile")
@click.argument("archive")
@click.option("--namespace", help="The archive's name of the namespace at --url.  [default: its prefix]")
def command(archive: str, namespace: str | None) -> None:
    """Compare the statistics that the engine keeps with those of its events, to the last bit.

    The same as `qmodel reconcile`, on Spark: one task for each queue folds its days in order.
    """
    spark = spark_session("reconcile")
    from qmodel.pipeline.spark.statistics import Spark

    try:
        reconcile_options.answer(Spark(spark), archive, namespace)
    finally:
        spark.stop()


common(command)

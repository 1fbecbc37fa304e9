"""`qmodel spark`: the jobs on Spark. Each is `command` in a module of its name, and runs by spark-submit, too."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import click

from qmodel.errors import QmodelError

JOBS: dict[str, str] = {
    "archive": "Archive all events, in Parquet.",
    "compact": "Merge the archive's files of closed days.",
    "verify": "Prove that the archive has each event once.",
    "statistics": "Show how long jobs waited and ran, and what failed, from an archive.",
    "plan": "Simulate the queue at many points: how many workers are enough?",
    "reconcile": "Compare the engine's statistics with those of its events, to the last bit.",
    "requests": "Enqueue the rows of a table as jobs, and collect their results.",
    "audit": "Execute archived journals once more, on the model, and compare the results.",
    "campaign": "Compare thousands of generated histories with the model.",
}
"""The jobs by name, with a sentence each."""


class Jobs(click.Group):
    """All jobs; each is made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names of all jobs."""
        return list(JOBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Make a job."""
        if name not in JOBS:
            return None
        made: click.Command = importlib.import_module(f"qmodel.cli.spark.{name.replace('-', '_')}").command
        return made

    def invoke(self, ctx: click.Context) -> Any:
        """Run a job; summarise an error of Spark in a sentence."""
        from qmodel.cli.spark.execute import is_of_spark, reason

        try:
            return super().invoke(ctx)
        except Exception as error:
            if not is_of_spark(error):
                raise
            raise QmodelError(reason(error)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the jobs, without making them."""
        with formatter.section("Jobs"):
            formatter.write_dl(list(JOBS.items()))


@click.command("spark", cls=Jobs)
@click.option("--master", metavar="MASTER", help="Where Spark runs: local[4], spark://host:7077, …  [default: Spark's]")
@click.pass_context
def command(context: click.Context, master: str | None) -> None:
    """Archive, count, check and simulate jobs, on Spark.

    \b
    The same with spark-submit:
        spark-submit [options] "$(python -m qmodel.cli.spark.submit)" JOB [options]
    """
    context.meta["qmodel.spark.master"] = master

"""`qmodel spark campaign`: compare thousands of histories with the model, on executors."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmodel.cli import campaigns
from qmodel.cli.session import common, session
from qmodel.cli.spark.execute import reason, spark_session
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from qmodel.conformance.campaign.parts import Campaign, Total


@click.command("campaign")
@click.option("--examples", default=1000, show_default=True, type=click.IntRange(1), help="How many histories.")
@click.option("--steps", default=60, show_default=True, type=click.IntRange(1), help="The operations of each history.")
@click.option("--seed", help="The seed of the histories.  [default: a new random one]")
@click.option(
    "--subject",
    default="embedded",
    show_default=True,
    help="The subject to compare with the model: embedded (the Lua library in each process), valkey or redis (a server "
    "for each process), or a URL that all can reach. Its namespace is emptied!",
)
@click.option("--every", default=1, show_default=True, type=click.IntRange(1), help="Compare the state each N-th step.")
@click.option("--tasks", type=click.IntRange(1), help="The number of tasks.  [default: Spark's]")
@click.option("--out", metavar="FOLDER", help="A new folder for parts, coverage and failures, as Parquet.")
@campaigns.PICTURE
def command(
    examples: int,
    steps: int,
    seed: str | None,
    subject: str,
    every: int,
    tasks: int | None,
    out: str | None,
    picture: Path | None,
) -> None:
    """Compare generated histories with the model, on Spark.

    Each history follows from the seed and its number, so a campaign is the same on every cluster. A difference is
    shrunk on its executor; then the exit code is 1. On one machine use `qmodel conformance run --processes`.
    """
    from qmodel.conformance.campaign import parts
    from qmodel.conformance.subjects import named

    at, seed = session(), seed or secrets.token_hex(4)
    opening = named.Opening(subject)
    opening.check()
    what = parts.Campaign(seed, opening, steps, every)
    total = _run(what, examples, tasks, out)
    again = f"qmodel spark campaign --examples {examples} --steps {steps} --seed {seed} --subject {subject}"
    campaigns.answer(at, total, seed, again + (f" --every {every}" if every > 1 else ""), picture)


def _run(what: Campaign, examples: int, tasks: int | None, out: str | None) -> Total:
    spark = spark_session("campaign")
    from qmodel.pipeline.spark import campaign

    began = time.monotonic()
    try:
        found = campaign.campaign(spark, what, examples, tasks=tasks)
        if out:
            found.write.parquet(f"{out}/parts")
            found = spark.read.parquet(f"{out}/parts")
            for name, table in (("coverage", campaign.coverage(found)), ("failures", campaign.failures(found))):
                table.coalesce(1).write.parquet(f"{out}/{name}")
        total = campaign.total(found)
    except Exception as error:
        raise QmodelError(reason(error)) from None
    total.seconds = time.monotonic() - began
    return total


common(command)

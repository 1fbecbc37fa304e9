"""`qmodel spark campaign`: thousands of histories on executors, each compared with the model."""

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
@click.option("--steps", default=60, show_default=True, type=click.IntRange(1), help="How many operations in each.")
@click.option("--seed", help="What the histories are drawn from.  [default: a new random one]")
@click.option(
    "--subject",
    default="embedded",
    show_default=True,
    help="What is compared with the model: embedded (the Lua library in each process), valkey or redis (a server of "
    "each process's own), or a URL that all can reach. Its namespace is emptied!",
)
@click.option("--every", default=1, show_default=True, type=click.IntRange(1), help="Compare the state each N-th step.")
@click.option("--tasks", type=click.IntRange(1), help="By how many tasks.  [default: Spark's]")
@click.option("--out", metavar="FOLDER", help="Where parts, coverage and failures are written as Parquet; new.")
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

    Each history is drawn from the seed and its number, so a campaign is the same wherever it runs. A difference is
    shrunk where it was found. Exit code 1 then. On one machine `qmodel conformance run --processes` is as good.
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

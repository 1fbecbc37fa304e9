"""`qmodel requests`: on Spark, enqueue the rows of a table as jobs, and collect their results in a table."""

from __future__ import annotations

from typing import Any

import click

from qmodel.cli.on import master_option, on_spark
from qmodel.cli.session import common, session


@click.command("requests")
@click.argument("pieces")
@click.option(
    "--id", "id", required=True, help="The id of the request. A repeated run with this id completes the missing rows."
)
@click.option("--queue", required=True, help="The queue of the jobs.")
@click.option("--klass", required=True, help="The job type.")
@click.option("--key", required=True, metavar="COLUMNS", help="The key columns of PIECES, separated by commas.")
@click.option("--out", metavar="FOLDER", help="A new folder for the results, as Parquet.")
@click.option(
    "--format", "form", default="parquet", show_default=True, help="The format of PIECES: parquet, json, csv, …"
)
@click.option("--limit", default=100, show_default=True, help="The most jobs that run at a time.")
@click.option("--priority", default=0, show_default=True, help="The priority of the jobs; lower runs sooner.")
@click.option("--retries", type=int, help="The retries of a job.  [default: as with any put, 5]")
@master_option
@click.option("--timeout", type=click.FloatRange(0), help="Seconds to wait for the end.  [default: unlimited]")
def command(pieces: str, out: str | None, form: str, timeout: float | None, **given: Any) -> None:
    """Enqueue the rows of PIECES, a table, as one request on Spark, and collect the results of the jobs.

    After a crash run the same command again: no row is enqueued twice. Exit code 1 if a row was not completed.
    """
    at = session()
    given["key"] = tuple(name.strip() for name in given["key"].split(",") if name.strip())
    header = {"header": "true", "inferSchema": "true"} if form == "csv" else {}
    with on_spark("requests") as spark:
        from qmodel.pipeline.spark.requests import perform

        frame = spark.read.format(form).options(**header).load(pieces)
        answers = perform(frame, timeout=float("inf") if timeout is None else timeout, url=at.url, **given)
        if out:
            answers.write.parquet(out)
        states = {row["state"]: row["count"] for row in answers.groupBy("state").count().orderBy("state").collect()}
    if at.json:
        at.answer({"id": given["id"], "states": states, "out": out})
    else:
        told = ", ".join(f"{count} {state}" for state, count in states.items()) or "no pieces"
        click.echo(f"Request {given['id']}: {told}" + (f"; the answers are in {out}" if out else ""))
    if set(states) - {"complete"}:
        click.get_current_context().exit(1)


common(command)

"""`qmodel spark requests`: the rows of a table are worked off by workers, and their answers are a table."""

from __future__ import annotations

from typing import Any

import click

from qmodel.cli.session import common, session
from qmodel.cli.spark.execute import reason, spark_session
from qmodel.errors import QmodelError


@click.command("requests")
@click.argument("pieces")
@click.option("--id", "id", required=True, help="Of the request. With the same id again, what is missing is done.")
@click.option("--queue", required=True, help="Where workers find the pieces.")
@click.option("--klass", required=True, help="What the pieces are for them.")
@click.option("--key", required=True, metavar="COLUMNS", help="The columns that tell pieces apart, by commas.")
@click.option("--out", metavar="FOLDER", help="Where the answers are written as Parquet; new.")
@click.option("--format", "form", default="parquet", show_default=True, help="Of PIECES: parquet, json, csv, …")
@click.option("--limit", default=100, show_default=True, help="How many run at a time.")
@click.option("--priority", default=0, show_default=True, help="Of the pieces, beside other requests; lower is sooner.")
@click.option("--retries", type=int, help="How often a piece is tried again.  [default: as with any put, 5]")
@click.option("--timeout", type=float, help="Seconds to wait for the end.  [default: as long as it takes]")
def command(pieces: str, out: str | None, form: str, timeout: float | None, **given: Any) -> None:
    """Let workers perform the rows of PIECES, a table, as one request, and gather their answers.

    Nothing is put twice: who is killed in the middle runs the same again. Exit code 1 if a piece was not completed.
    """
    at = session()
    given["key"] = tuple(name.strip() for name in given["key"].split(",") if name.strip())
    spark = spark_session("requests")
    from qmodel.pipeline.spark.requests import perform

    header = {"header": "true", "inferSchema": "true"} if form == "csv" else {}
    try:
        frame = spark.read.format(form).options(**header).load(pieces)
        answers = perform(frame, timeout=float("inf") if timeout is None else timeout, url=at.url, **given)
        if out:
            answers.write.parquet(out)
        states = {row["state"]: row["count"] for row in answers.groupBy("state").count().orderBy("state").collect()}
    except QmodelError:
        raise
    except Exception as error:
        raise QmodelError(reason(error)) from None
    if at.json:
        at.answer({"id": given["id"], "states": states, "out": out})
    else:
        told = ", ".join(f"{count} {state}" for state, count in states.items()) or "no pieces"
        click.echo(f"Request {given['id']}: {told}" + (f"; the answers are in {out}" if out else ""))
    if set(states) - {"complete"}:
        click.get_current_context().exit(1)


common(command)

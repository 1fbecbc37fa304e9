"""`qmodel spark audit`: execute archived journals once more, on executors."""

from __future__ import annotations

import time

import click

from qmodel.cli.session import common, session
from qmodel.cli.spark.execute import reason, spark_session
from qmodel.errors import QmodelError


@click.command("audit")
@click.argument("journals", metavar="ARCHIVE")
@click.option("--after", default=0, type=click.IntRange(0), help="Begin with the first state after this entry.")
@click.option("--save", is_flag=True, help="Keep the state with which each namespace ends.")
@click.option("--most", default=10, show_default=True, type=click.IntRange(1), help="The most differences to show.")
def command(journals: str, after: int, save: bool, most: int) -> None:
    """Execute archived journals once more, on the model, side by side, and compare the results.

    ARCHIVE is written by `qmodel journals ARCHIVE --add`; all executors must see it. Each namespace is a segment. Kept
    states (`qmodel journals ARCHIVE --take`) divide it into several, and each must end with the state that begins the
    next. Exit code 1 if something differs.
    """
    at, spark = session(), spark_session("audit")
    from qmodel.cli.audit import answer
    from qmodel.pipeline.archive.layout import ArchiveError
    from qmodel.pipeline.spark.audit import audit

    began = time.monotonic()
    try:
        found = audit(spark, journals, after=after, save=save)
        rows = [row.asDict() for row in found.collect()]
    except ArchiveError:
        raise
    except Exception as error:
        raise QmodelError(f"Spark could not audit {journals}: {reason(error)}") from None
    finally:
        spark.stop()
    answer(at, rows, most, time.monotonic() - began)


common(command)

"""The engine that answers SQL about an archive: DuckDB on this machine, or Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.live import need
from qmodel.cli.on import on_options, on_spark, only

if TYPE_CHECKING:
    from qmodel.pipeline.spark.statistics import Spark
    from qmodel.pipeline.statistics.local import DuckDB


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --on, --master, --memory and --threads."""
    for option in reversed(
        (
            on_options,
            click.option("--memory", default="", metavar="SIZE", help="For DuckDB: 2GB.  [default: most of it]"),
            click.option("--threads", default=0, type=click.IntRange(0), help="For DuckDB.  [default: all CPUs]"),
        )
    ):
        function = option(function)
    return function


@contextmanager
def started(job: str, on: str, memory: str, threads: int) -> Iterator[DuckDB | Spark]:
    """Start the engine of a command."""
    if on == "spark":
        only("local", memory=memory, threads=threads)
        with on_spark(job) as spark:
            from qmodel.pipeline.spark.statistics import Spark

            yield Spark(spark)
        return
    need("duckdb", "duckdb", job)
    need("pyarrow", "duckdb", job)
    from qmodel.pipeline.statistics.local import DuckDB

    with DuckDB(memory, threads) as engine:
        yield engine

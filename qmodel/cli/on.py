"""Where a command does its work: on this machine, or on Spark (`--on spark`)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.live import need
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from qmodel.processes import Run


MASTER = "qmodel.spark.master"
"""Where the context of a command keeps the option --master."""


def _set_master(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value and context.params.get("on", "spark") != "spark":
        raise click.UsageError("--master says where Spark runs: give --on spark, too.")
    context.meta[MASTER] = value


master_option = click.option(
    "--master",
    metavar="MASTER",
    expose_value=False,
    callback=_set_master,
    help="Where Spark runs: local[4], spark://host:7077, sc://host, ...  [default: Spark's]",
)


def on_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --on and --master."""
    return click.option(
        "--on",
        type=click.Choice(["local", "spark"]),
        default="local",
        show_default=True,
        is_eager=True,
        help="On this machine, or on Spark.",
    )(master_option(function))


def only(on: str, **given: Any) -> None:
    """Refuse options that another place of work needs. Raises UsageError."""
    if named := [name for name, value in given.items() if value]:
        raise click.UsageError(f"--{named[0]} is for --on {on}.")


@contextmanager
def on_spark(job: str) -> Iterator[SparkSession]:
    """Give the session of a job, and stop it afterwards; summarise an error of Spark in a sentence.

    Raises QmodelError if Spark or Java is missing; its text says how to get it.
    """
    need("pyspark", "spark", f"{job} --on spark")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise QmodelError("Spark is a program of Java, and there is none. Run: apt install default-jre-headless")
    try:
        spark = spark_session(f"qmodel {job}", click.get_current_context().meta.get(MASTER))
        try:
            yield spark
        finally:
            spark.stop()
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise QmodelError(reason(error)) from None


def spark_session(name: str, master: str | None) -> SparkSession:
    """Start a session of Spark."""
    from qmodel.pipeline.spark import session

    return session(name, master)


@contextmanager
def performing(job: str, on: str, count: int) -> Iterator[Run]:
    """Give the executor of the tasks of a job: Spark, or so many processes of this machine."""
    need("pyarrow", "arrow", job)
    if on == "spark":
        with on_spark(job) as spark:
            from qmodel.pipeline.spark.tasks import on as on_executors

            yield on_executors(spark)
    else:
        from qmodel.processes import processes

        with processes(count, consequence="Nothing was added.") as run:
            yield run


STEPS = (
    (r"No module named '(?P<what>[\w.]+)'", "The executors' Python has no {what}."),
    (r'Cannot run program "(?P<what>[^"]*)"', "Executors have no program {what}: set PYSPARK_PYTHON to their Python."),
    (r"PYTHON_VERSION_MISMATCH\]\s*(?P<what>[^\n]*)", "Executors have another Python: {what}"),
    (r"stopped SparkContext", "Spark ended before it began: is there a master at that address, of this version?"),
)
"""Explanations of cluster errors, by the text that Spark prints."""

WHERE = " docs/pipeline/cluster.md describes the setup of a cluster."


def reason(error: Any) -> str:
    """Give the last line of a task's or Spark's error, which follows a traceback through two languages."""
    for pattern, sentence in STEPS:
        if found := re.search(pattern, str(error)):
            return sentence.format(**found.groupdict()) + WHERE
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("at ", "File ", "Caused by", "JVM stacktrace", "Driver"))]
    named = [line for line in said if "Error" in line.partition(":")[0] or "Refused" in line.partition(":")[0]]
    return (named or said or [repr(error)])[-1 if named else 0]


def is_of_spark(error: Exception) -> bool:
    """Say whether an error comes from Spark or Py4J, with a Java traceback."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")

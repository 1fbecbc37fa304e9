"""The execution of a job of `qmodel spark`: in a Spark session, or in processes of this machine."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.live import need
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from qmodel.processes import Run


def spark_session(job: str) -> SparkSession:
    """Start the session of a job. Raises QmodelError if Spark or Java is missing; its text says how to get it."""
    need("pyspark", "spark", f"spark {job}")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise QmodelError("Spark is a program of Java, and there is none. Run: apt install default-jre-headless")
    from qmodel.pipeline.spark import session

    return session(f"qmodel {job}", click.get_current_context().meta.get("qmodel.spark.master"))


@contextmanager
def performing(job: str, local: int | None) -> Iterator[Run]:
    """Give the executor of the tasks of a job: Spark, or processes of this machine."""
    need("pyarrow", "arrow", f"spark {job}")
    if local is None:
        from qmodel.pipeline.spark.tasks import on

        spark = spark_session(job)
        try:
            yield on(spark)
        finally:
            spark.stop()
    else:
        from qmodel.processes import processes

        with processes(local, consequence="Nothing was added.") as run:
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

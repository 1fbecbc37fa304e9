"""The session in which a job of `qmodel spark` runs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import click

from qmodel.cli.watching import need
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(job: str) -> SparkSession:
    """Begin the session of a job. Raises QmodelError where Spark or Java is absent; says how to get it."""
    need("pyspark", "spark", f"spark {job}")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise QmodelError("Spark is a program of Java, and there is none. Run: apt install default-jre-headless")
    from qmodel.pipeline.spark import session

    return session(f"qmodel {job}", click.get_current_context().meta.get("qmodel.spark.master"))

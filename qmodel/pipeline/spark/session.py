"""Make a Spark session that knows the format `qmodel`."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from qmodel.pipeline.spark.package import ship
from qmodel.pipeline.spark.source import EventsSource


def session(name: str, master: str | None = None) -> SparkSession:
    """Give the running session, or start one, with the format `qmodel` registered.

    `name` is the name of the application; `master` is where it runs, such as `local[4]`, `spark://host:7077`, or
    `sc://host:15002` for Spark Connect. The default is what spark-submit or Spark's configuration says, else all cores
    of this machine. Executors of a cluster get the driver's qmodel (`qmodel.pipeline.spark.package`); the packages that
    it needs must be installed there. A server of Spark Connect and its executors need qmodel themselves.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the interpreter that has qmodel
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    found: SparkSession = builder.getOrCreate()
    if not is_remote():
        ship(found.sparkContext)  # first: a registered source takes along only files that were shipped before
    register(found)
    return found


def register(spark: SparkSession) -> None:
    """Register the format `qmodel` with a session: `spark.read.format("qmodel").option("url", ...).load()`."""
    source: Any = EventsSource
    spark.dataSource.register(source)

"""Statistics on Spark: the SQL of `qmodel.pipeline.statistics`, executed there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from qmodel.pipeline.archive.layout import Archive, File
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.statistics.ordered import Kernel
from qmodel.pipeline.statistics.sql import SPARK

PARTITIONS = "spark.sql.shuffle.partitions"
SHARE = 250_000
"""Events of a partition: a second or two of one core, and some 50 MB."""


class Spark:
    """A session of Spark, as what executes SQL. How many partitions it makes follows from the number of events, unless
    somebody has said it: Spark's own 200 are too many for a day of most, and too few for a year of some.
    """

    dialect = SPARK

    def __init__(self, spark: SparkSession) -> None:
        self._at = spark
        self.told = PARTITIONS in spark.conf.getAll  # what is set, and not what is so by default

    def events(self, name: str, archive: Archive, files: Sequence[File]) -> None:
        """Name the events in some files of an archive: a folder that all executors see at one place, or a URL."""
        root = archive.root.rstrip("/") if "://" in archive.root else f"file://{archive.path}"
        paths = [f"{root}{file.path[len(archive.path) :]}" for file in files]
        fields = [StructField("namespace", StringType()), StructField("day", StringType())]
        schema = StructType([*from_arrow_schema(SCHEMA).fields, *fields])
        found = self._at.read.schema(schema).option("basePath", root).parquet(*paths)
        found.drop("day").createOrReplaceTempView(name)
        if not self.told:
            self._at.conf.set(PARTITIONS, min(max(sum(file.rows for file in files) // SHARE, 4), 10_000))

    def parquet(self, name: str, folders: Sequence[str]) -> None:
        """Name what stands in the files of some folders."""
        self._at.read.parquet(*(f"file://{Path(folder).resolve()}" for folder in folders)).createOrReplaceTempView(name)

    def view(self, name: str, select: str) -> None:
        """Name a select."""
        self._at.sql(select).createOrReplaceTempView(name)

    def table(self, name: str, select: str) -> None:
        """Name a select, and keep what it gives, in memory or on the executors' disks."""
        found = self._at.sql(select)
        found.persist()
        found.createOrReplaceTempView(name)

    def write(self, select: str, folder: Path) -> None:
        """Write what a select gives into a new folder, as Parquet; it is one that all executors see."""
        self._at.sql(select).write.option("compression", "zstd").parquet(f"file://{folder.resolve()}")

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        """What a select gives."""
        return [tuple(row) for row in self._at.sql(select).collect()]

    def ordered(
        self, select: str, keys: Sequence[str], order: str, kernel: Kernel, schema: pa.Schema
    ) -> list[tuple[Any, ...]]:
        """What a kernel makes of the rows of a select: rows of equal keys are in one task, sorted by a column."""
        rows = self._at.sql(select).repartition(*keys).sortWithinPartitions(*keys, order)
        return [tuple(row) for row in rows.mapInArrow(kernel, from_arrow_schema(schema)).collect()]

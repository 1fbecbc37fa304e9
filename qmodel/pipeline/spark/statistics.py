"""Execute the SQL of `qmodel.pipeline.statistics` on Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType, TimestampNTZType, TimestampType

from qmodel.pipeline.archive.layout import Archive, File
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.statistics.ordered import Kernel
from qmodel.pipeline.statistics.runs import FilesGone, check_columns
from qmodel.pipeline.statistics.sql import SPARK

T = TypeVar("T")

PARTITIONS = "spark.sql.shuffle.partitions"
SHARE = 250_000
"""The number of events in a partition: a second or two of one core, and some 50 MB."""


class Spark:
    """A Spark session as the SQL engine.

    The number of partitions follows from the number of events, unless it is configured: Spark's default of 200 is too
    many for a usual day, and too few for a year of a large queue.
    """

    dialect = SPARK

    def __init__(self, spark: SparkSession) -> None:
        self._at = spark
        self.told = PARTITIONS in spark.conf.getAll  # an explicit setting, not the default

    def events(self, name: str, archive: Archive, files: Sequence[File]) -> None:
        """Define a view of the events in some files of an archive: a folder that all executors see, or a URL."""
        check_columns(archive, files)
        root = archive.root.rstrip("/") if "://" in archive.root else f"file://{archive.path}"
        paths = [_literal(f"{root}{file.path[len(archive.path) :]}") for file in files]
        fields = [StructField("namespace", StringType()), StructField("day", StringType())]
        schema = StructType([*from_arrow_schema(SCHEMA).fields, *fields])
        if paths:
            found = self._asking(lambda: self._at.read.schema(schema).option("basePath", root).parquet(*paths))
        else:
            found = self._at.createDataFrame([], schema)
        found.drop("day").createOrReplaceTempView(name)
        if not self.told:
            self._at.conf.set(PARTITIONS, min(max(sum(file.rows for file in files) // SHARE, 4), 10_000))

    def parquet(self, name: str, folders: Sequence[str]) -> None:
        """Define a view of the Parquet files in some folders, or at some URLs."""
        paths = [_literal(_url(folder)) for folder in folders]
        gone = f"{folders[0]} or one after it is gone. Use another folder, and everything is made anew."
        schema = _of_instants(self._asking(lambda: self._at.read.parquet(*paths).schema, gone))
        self._at.read.schema(schema).parquet(*paths).createOrReplaceTempView(name)

    def view(self, name: str, select: str) -> None:
        """Define a view."""
        self._at.sql(select).createOrReplaceTempView(name)

    def table(self, name: str, select: str) -> None:
        """Define a table: its rows are kept in memory or on the executors' disks."""
        found = self._at.sql(select)
        found.persist()
        found.createOrReplaceTempView(name)

    def write(self, select: str, folder: str) -> None:
        """Write the rows of a select into a new folder that all executors see, or to a URL, as Parquet."""
        found = self._at.sql(select)
        self._asking(lambda: found.write.option("compression", "zstd").parquet(_url(folder)))

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        """Give the rows of a select."""
        return [tuple(row) for row in self._asking(self._at.sql(select).collect)]

    def ordered(
        self, select: str, keys: Sequence[str], order: str, kernel: Kernel, schema: pa.Schema
    ) -> list[tuple[Any, ...]]:
        """Call a kernel with the rows of a select, sorted by a column: rows with equal keys are in one task."""
        rows = self._at.sql(select).repartition(*keys).sortWithinPartitions(*keys, order)
        return [tuple(row) for row in self._asking(rows.mapInArrow(kernel, from_arrow_schema(schema)).collect)]

    @staticmethod
    def _asking(ask: Callable[[], T], gone: str = "Files of the archive were merged meanwhile.") -> T:
        try:
            return ask()
        except Exception as error:
            if not any(word in str(error) for word in ("FILE_NOT_EXIST", "PATH_NOT_FOUND")):
                raise
            raise FilesGone(gone) from error


def _of_instants(schema: StructType) -> StructType:
    """Turn moments without a zone into instants: those that DuckDB writes are in UTC."""
    return StructType([
        StructField(field.name, TimestampType() if isinstance(field.dataType, TimestampNTZType) else field.dataType)
        for field in schema
    ])  # fmt: skip


def _literal(path: str) -> str:
    """Give a path without patterns: Spark takes brackets and the like in the name of a folder for some."""
    return re.sub(r"[\\{}\[\]*?]", r"\\\g<0>", path)


def _url(place: str) -> str:
    """Give the URL of a folder, as Spark finds it."""
    return place if "://" in place else f"file://{Path(place).resolve()}"

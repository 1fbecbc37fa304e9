"""An audit of archived journals on executors: each task executes a segment of a namespace again, entry by entry.

The entries of a segment are brought to one task, and sorted there; they are read in batches, so that a task needs
memory for what the namespace holds, and not for what happened. That they come in their order the audit itself proves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from qmodel.pipeline import findings, journals
from qmodel.pipeline.archive import Archive, File
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.journals import Segment

KEYS = ("namespace", "after", "last")


def audit(spark: SparkSession, root: str, *, after: int = 0, save: bool = False) -> DataFrame:
    """A table of what differs, and of the end of each segment: `findings.SCHEMA`. Keep it to ask it twice.

    It begins with the first state that is not before the entry `after`; with `save` the state with which a namespace
    ends is kept. All executors must see `root`. Raises ArchiveError where there is no state to begin with.
    """
    archive = Archive(root)
    segments = [one for space in archive.namespaces() for one in journals.segments(root, space, after)]
    files = [file for one in sorted({one.namespace for one in segments}) for file in archive.files(one)]
    if not segments:
        return spark.createDataFrame([], from_arrow_schema(findings.SCHEMA))
    rows = [(one.namespace, one.after, one.last or 2**62) for one in segments]
    cut = spark.createDataFrame(rows, "name string, after long, last long")
    entries = _entries(spark, archive, files)
    inside = (F.col("namespace") == F.col("name")) & (F.col("number") > F.col("after"))
    parts = entries.join(F.broadcast(cut), inside & (F.col("number") <= F.col("last"))).drop("name")
    ordered = parts.repartition(len(segments), *KEYS).sortWithinPartitions(*KEYS, "number")

    def run(key: tuple[Any, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        space, begin, last = (one.as_py() for one in key)
        segment = Segment(space, begin, 0 if last == 2**62 else last)
        here = (entry for batch in batches for entry in journals.entries_of(batch))
        for finding in findings.found(root, segment, here, save):
            yield findings.batch([finding])

    return ordered.groupBy(*KEYS).applyInArrow(run, from_arrow_schema(findings.SCHEMA))


def _entries(spark: SparkSession, archive: Archive, files: Sequence[File]) -> DataFrame:
    """The archived entries, each with its namespace."""
    root = archive.root.rstrip("/") if "://" in archive.root else f"file://{archive.path}"
    paths = [f"{root}{file.path[len(archive.path) :]}" for file in files]
    schema = StructType([*from_arrow_schema(journals.SCHEMA).fields, StructField("namespace", StringType())])
    found = spark.read.schema(schema).option("basePath", root).parquet(*paths)
    return found.select("namespace", "number", "seq", "call", "outcome")

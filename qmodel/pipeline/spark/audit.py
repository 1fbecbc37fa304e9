"""Audit archived journals on executors: each task executes a segment of a namespace again, entry by entry.

A task reads the files of its segment itself, one after the other. So nothing is shuffled, even if one namespace is most
of the work, and a task needs memory for the content of the namespace, not for its history. The longest segments start
first, so that none of them is left alone at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from qmodel.pipeline.archive.kinds import JOURNAL, opened
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.audit import findings
from qmodel.pipeline.journal import archive


def audit(spark: SparkSession, root: str, *, after: int = 0, save: bool = False) -> DataFrame:
    """Give a table of the differences and of the end of each segment: `findings.SCHEMA`. Persist it to query it twice.

    The audit begins with the first state at or after the entry `after`. With `save`, the last state of each namespace
    is kept. All executors must see `root`. Raises ArchiveError if there is no state to begin with.
    """
    where, segments = opened(root, JOURNAL).place, archive.all_segments(root, after)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                for finding in findings.audited(where, segments[place], save):
                    yield findings.batch([finding])

    tasks = spark.range(0, len(segments), 1, max(len(segments), 1))
    return tasks.mapInArrow(run, from_arrow_schema(findings.SCHEMA))

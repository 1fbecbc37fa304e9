"""Run a conformance campaign on executors: the seeds are the data, and each task compares its own histories.

A row of the result is a part of the campaign. Spark computes a table again whenever it is used, so keep it with
`campaign(...).persist()`, or write it first.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from qmodel.conformance.campaign.parts import HISTORIES, Campaign, Total
from qmodel.pipeline import campaigns
from qmodel.pipeline.arrow import pa


def campaign(
    spark: SparkSession, what: Campaign, examples: int, *, size: int = HISTORIES, tasks: int | None = None
) -> DataFrame:
    """Give a table of the parts of a campaign, of `size` histories each; `campaigns.SCHEMA` has its columns.

    `tasks` is the number of tasks, by default the number of Spark's cores.

    The tasks need qmodel with the extra `conformance`, and the server program if the campaign starts one.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            firsts = (part * size for part in batch.column("id").to_pylist())
            yield from campaigns.parts(what, firsts, examples, size)

    numbers = spark.range(0, -(-examples // size), 1, tasks)
    return numbers.mapInArrow(run, from_arrow_schema(campaigns.SCHEMA))


def coverage(parts: DataFrame) -> DataFrame:
    """Count what was reached: operation, situation, outcome, times."""
    one = parts.select(F.explode("reached").alias("r")).select("r.*")
    return one.groupBy("operation", "situation", "outcome").agg(F.sum("times").alias("times"))


def failures(parts: DataFrame) -> DataFrame:
    """List the histories that failed, a row each; see `qmodel.conformance.campaign.parts.Found`."""
    return parts.select(F.explode("failures").alias("f")).select("f.*")


def throughput(parts: DataFrame) -> DataFrame:
    """Add up histories, steps and seconds by process."""
    return parts.groupBy("by").agg(*(F.sum(name).alias(name) for name in ("histories", "steps", "seconds")))


def total(parts: DataFrame) -> Total:
    """Add up the parts, on the driver."""
    return Total(campaigns.part(row.asDict(recursive=True)) for row in parts.collect())

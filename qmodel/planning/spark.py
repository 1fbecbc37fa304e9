"""Plan capacity on executors: the runs of all points are the data, and each task simulates some of them.

The slowest runs are neighbours in the list, and a task gets neighbours. So the list is shuffled, in the same way every
time, to spread them over the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from qmodel.pipeline.arrow import pa
from qmodel.planning import capacity
from qmodel.planning.capacity import Measured, Outcome
from qmodel.planning.grids import Grid

SCHEMA: pa.Schema = pa.schema([("point", pa.int64()), ("run", pa.int64()), ("measured", pa.string())])
"""A run: its point, its number, and its measures as JSON of `qmodel.planning.capacity.Measured`."""


def measurements(spark: SparkSession, grid: Grid, *, tasks: int | None = None) -> DataFrame:
    """Simulate all runs of all points, a row each, in so many tasks; by default one for each of Spark's cores."""
    todo = capacity.tasks(grid)
    Random(0).shuffle(todo)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                point, run = todo[number]
                told = json.dumps(capacity.measure(grid, point, run))
                row = {"point": point, "run": run, "measured": told}
                yield pa.RecordBatch.from_pylist([row], schema=SCHEMA)

    return spark.range(0, len(todo), 1, tasks).mapInArrow(run, from_arrow_schema(SCHEMA))


def outcomes(grid: Grid, found: DataFrame) -> list[Outcome]:
    """Combine a table of all runs into points, on the driver."""
    told = (json.loads(row.measured) for row in found.collect())
    return capacity.outcomes(grid, (_measured(*one) for one in told))


def _measured(point: int, run: int, values: list[tuple[str, list[float]]], *rest: Any) -> Measured:
    return Measured(point, run, tuple((name, tuple(figures)) for name, figures in values), *rest)

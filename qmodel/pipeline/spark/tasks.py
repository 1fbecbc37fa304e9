"""Run a function on the executors for each of some values, in a task of its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from qmodel.errors import QmodelError
from qmodel.pipeline.arrow import pa
from qmodel.processes import Run


def on(spark: SparkSession) -> Run:
    """Make a runner that calls a function for each of some values on Spark; the driver keeps all results.

    A task that is retried or runs twice must do the same again. An error that the function raises on purpose does not
    retry the task: it is raised here.
    """

    def run(function: Callable[[Any], Any], things: Iterable[Any]) -> Iterable[Any]:
        tasks = [pickle.dumps(thing) for thing in things]
        if not tasks:
            return []

        def perform(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for place in batch.column(0).to_pylist():
                    result: object
                    try:
                        result = function(pickle.loads(tasks[place]))
                    except QmodelError as error:
                        result = error
                    yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})

        rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(perform, "result binary").collect()
        results = [pickle.loads(row.result) for row in rows]
        for result in results:
            if isinstance(result, QmodelError):
                raise result
        return results

    return run

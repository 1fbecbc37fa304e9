"""Run on a cluster with `spark-submit`, started by test_cluster.py. Its argument is a folder.

The executors do not have the modules of the tests, so their work is in nested functions, which Spark ships.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import functions as F

from qmodel.pipeline.archive.write import archive
from qmodel.pipeline.spark import session
from qmodel.pipeline.spark.tasks import on

ROWS = 4000


def straggler(folder: Path, name: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make rows; the first attempt of one task stops in the middle until another one has ended.

    The other attempts begin when there is a file `<name>-go`.
    """

    def awaited(what: str) -> None:
        until = time.monotonic() + 600
        while not (folder / f"{name}-{what}").exists():
            assert time.monotonic() < until, f"no {name}-{what}"
            time.sleep(0.02)

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        straggles = context is not None and context.partitionId() == 0
        first = straggles and context.attemptNumber() == 0
        if straggles and not first:
            awaited("go")
        for number, batch in enumerate(batches):
            yield batch
            if first and number == 2:
                java = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
                (folder / f"{name}-executor").write_text(java)
                awaited("again")
                (folder / f"{name}-beside").touch()
        if straggles and not first:
            (folder / f"{name}-again").touch()

    return rows


def main(folder: Path) -> None:
    """Write rows beside stragglers, then with an executor that is killed; archive the events."""
    spark = session("test")
    url = os.environ["QMODEL_URL"]
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
    wide = F.lit("x" * 1000)  # or all rows of a task would wait in one buffer
    frame = spark.range(0, ROWS, 1, 2).select(F.struct("id", wide.alias("text")).alias("data"))
    (folder / "twice-go").touch()
    for name in ("twice", "killed"):
        rows = frame.mapInArrow(straggler(folder, name), frame.schema)
        rows.write.format("qmodel").mode("append").options(queue=name, klass="Send", run=name).save()
    for progress in archive(url, str(folder / "events"), run=on(spark), rows=5000):
        print("archived", progress.rows, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""`python -m bench.contenders NAME ARCHIVE OUT`: count an archive with one tool, and print the result as JSON.

`jobs` is the number of runs by queue, which every tool counts. `counts` is a digest of the whole numbers that both the
SQL and the fold compute. `figures` is a digest of all figures of the SQL, exact to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

DUCKDB_MEMORY, JVM_MEMORY = "3GB", "3g"


def duckdb(root: str, out: str) -> dict[str, Any]:
    """Run `qmodel statistics`."""
    from qmodel.pipeline.statistics.local import DuckDB

    with DuckDB(DUCKDB_MEMORY) as engine:
        return _by_sql(engine, root, out)


def spark(root: str, out: str) -> dict[str, Any]:
    """Run `qmodel statistics --on spark`."""
    from pyspark.sql import SparkSession

    from qmodel.pipeline.spark.statistics import Spark

    builder: Any = SparkSession.builder
    builder = builder.master(f"local[{len(os.sched_getaffinity(0))}]").config("spark.ui.enabled", "false")
    return _by_sql(Spark(builder.config("spark.driver.memory", JVM_MEMORY).getOrCreate()), root, out)


def _by_sql(engine: Any, root: str, out: str) -> dict[str, Any]:
    from qmodel.pipeline.archive.layout import Archive
    from qmodel.pipeline.statistics.count import collect, count

    count(engine, Archive(root), out)
    found = collect(engine)
    jobs = sum(one.run.count for name, one in found.items() if name.kind == "queue")
    counts = _digest(_counts(name, one) for name, one in found.items())
    return {"jobs": jobs, "counts": counts, "figures": _digest(_figures(name, one) for name, one in found.items())}


def polars(root: str, out: str) -> dict[str, Any]:
    """Count with Polars. It counts less: no tags, no corrections of earlier events; but its percentiles are exact."""
    import polars as pl

    events = pl.scan_parquet(f"{root}/*/*/*.parquet", hive_partitioning=True)
    events = events.with_columns(at=pl.col("happened_at").dt.epoch("d"))
    klasses = events.filter(event="put").select("namespace", "jid", "klass")
    done = events.filter(pl.col("event").is_in(["popped", "completed", "failed", "retried"])).drop("klass")
    done = done.join(klasses, on=["namespace", "jid"])
    both = (pl.col("wait_ms"), pl.col("run_ms"))
    figures = [getattr(ms, one)().name.suffix(one) for ms in both for one in ("count", "mean", "var")]
    figures += [ms.quantile(q).name.suffix(str(q)) for ms in both for q in (0.5, 0.9, 0.95, 0.99)]
    counts = [(pl.col("event") == one).sum().alias(one) for one in ("failed", "retried")]
    for by in ("queue", "klass", "worker"):
        found = done.group_by("namespace", "at", by).agg(*figures, *counts).collect(engine="streaming")
    return {"jobs": found["run_mscount"].sum()}


def fold(root: str, out: str) -> dict[str, Any]:
    """Count with a fold in one Python process: without percentiles, and without earlier counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from qmodel.pipeline.archive.layout import Archive
    from qmodel.pipeline.events.decode import events_of
    from qmodel.pipeline.statistics.figures import Name
    from qmodel.pipeline.statistics.fold import Fold

    archive, found = Archive(root), dict[Name, Any]()
    for namespace in archive.namespaces():
        made = Fold()
        tables = [pq.ParquetFile(file.path).read() for file in archive.files(namespace)]
        made.add(events_of(pa.concat_tables(tables).sort_by("seq")))
        found |= {Name(namespace, key.day, key.by, key.name): tally for key, tally in made.tallies.items()}
    jobs = sum(one.run.count for name, one in found.items() if name.kind == "queue")
    return {"jobs": jobs, "counts": _digest(_counts(name, one) for name, one in sorted(found.items()))}


def _counts(name: Any, one: Any) -> str:
    """Give the whole numbers of figures or of a tally; an empty result if all are 0."""
    durations = [(each.count, sorted((+each.bins).items())) for each in (one.wait, one.run)]
    rest = (one.failures, one.failed, one.retries, sorted((+one.groups).items()))
    return f"{tuple(name)} {durations} {rest}" if one.wait.count + one.run.count or any(rest) else ""


def _figures(name: Any, one: Any) -> str:
    """Give all figures, and the sums that they are made of."""
    sums = [(each.total, each.squared) for each in (one.wait, one.run)]
    return f"{_counts(name, one)} {one.shown(name)} {sums} {sorted(one.hours.items())}"


def _digest(lines: Iterable[str]) -> str:
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode())
    return found.hexdigest()


CONTENDERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "DuckDB": duckdb,
    "Polars": polars,
    "Spark": spark,
    "Fold": fold,
}

if __name__ == "__main__":
    print(json.dumps(CONTENDERS[sys.argv[1]](*sys.argv[2:])))

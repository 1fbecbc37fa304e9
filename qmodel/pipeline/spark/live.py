"""Statistics of a stream of events: by window of time, queue and job type, on Spark."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

MEASURES = {"wait": "popped", "run": "completed"}
"""The durations, and the events that tell them."""

COUNTS = ("put", "failed", "retried", "lock_lost")
"""The events that are counted."""

PERCENTILES = (50, 95, 99)
ACCURACY = 1000
"""A percentile of up to 500 durations is exact, whatever the batches of a stream are."""


def windows(events: DataFrame, every: str = "1 minute", late: str = "10 minutes") -> DataFrame:
    """Give the figures of each window of time and queue: `begins_at`, `queue`, counts, and durations in milliseconds.

    `events` is a stream or a table with the columns of events, at least `happened_at`, `event`, `queue`, `wait_ms` and
    `run_ms`. `every` is the length of a window. An event that is more than `late` older than the newest is left out of
    a stream's windows: the memory of the query does not grow. With the output mode `append` a window is given once,
    when it is over; with `update` whenever it changes. Percentiles are approximate: to one thousandth of the rank.
    """
    known = events.where(F.col("queue").isNotNull()).withWatermark("happened_at", late)
    of = known.groupBy(F.window("happened_at", every).alias("window"), "queue")
    found = of.agg(*(_number(F.col("event") == name).alias(name) for name in COUNTS), *_durations())
    return found.select(F.col("window.start").alias("begins_at"), *found.columns[1:])


def _number(where: Column) -> Column:
    return F.count(F.when(where, 1))


def _durations() -> list[Column]:
    found = []
    for name, event in MEASURES.items():
        value = F.when(F.col("event") == event, F.col(f"{name}_ms"))
        found += [F.count(value).alias(f"{name}s"), F.avg(value).alias(f"{name}_mean_ms")]
        found += [F.percentile_approx(value, one / 100, ACCURACY).alias(f"{name}_p{one}_ms") for one in PERCENTILES]
    return found

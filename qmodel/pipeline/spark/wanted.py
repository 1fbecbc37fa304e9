"""Read the options of a read of events, or of entries of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.ranges import ROWS
from qmodel.pipeline.spark.stream import ALL


class Wanted(NamedTuple):
    """The options of a read."""

    url: str
    after: int
    last: int
    rows: int
    min_partitions: int
    fail_on_data_loss: bool
    epoch: int | None = None  # of the event or entry `after`


OPTIONS = ("url", "table", "pushdown", "after", "epoch", "last", "rowsPerPartition", "minPartitions", "failOnDataLoss")


def wanted(options: Mapping[str, str]) -> Wanted:
    """Read the options of events, all but `table` and `pushdown`. Raises ValueError."""
    given = Given(options, OPTIONS)
    given.text("table")
    given.flag("pushdown", False)
    found = Wanted(
        given.url(),
        given.whole("after", 0),
        given.whole("last", ALL),
        given.whole("rowsPerPartition", ROWS, low=1),
        given.whole("minPartitions", 1, low=1),
        given.flag("failOnDataLoss", True),
    )
    epoch = given.whole("epoch", 0, digits=16) if "epoch" in {one.lower() for one in options} else None
    given.end()
    return found._replace(epoch=epoch)

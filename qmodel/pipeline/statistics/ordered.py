"""Fold an archive with SQL, in the engine's order: the result equals its statistics to the last bit.

Sums added in any order differ from the engine's, which adds one duration after the other and rounds each time. So the
durations of each queue and day are sorted by their events and added in that order, different days and queues in
parallel. Whole numbers are counted by SQL. The result is a `Fold` that can continue with the events behind the archive:
it knows which jobs are still failed, and which leases were lost last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from qmodel.model.state.stats import BINS
from qmodel.pipeline.archive.layout import Archive
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.statistics import sql
from qmodel.pipeline.statistics.count import Engine, define_views
from qmodel.pipeline.statistics.fold import Fold, Key, Known, Lost
from qmodel.pipeline.statistics.runs import Range, StatisticsError, again_if_merged
from qmodel.pipeline.statistics.tallies import Sample, Tally

Kernel = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

KEYS = ("queue", "day", "measure")
SAMPLES = pa.schema(
    [
        ("queue", pa.string()),
        ("day", pa.int64()),
        ("measure", pa.string()),
        ("count", pa.int64()),
        ("mean", pa.float64()),
        ("squares", pa.float64()),
        ("bins", pa.list_(pa.int64())),
    ]
)


class OrderedEngine(Engine, Protocol):
    """An SQL engine that can give rows to Python in order."""

    def ordered(
        self, select: str, keys: Sequence[str], order: str, kernel: Kernel, schema: pa.Schema
    ) -> list[tuple[Any, ...]]:
        """Call a kernel with the rows of a select, sorted by a column: one call for all rows with equal keys."""


def samples(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up durations by KEYS in the order of their events; give a row for each sample."""
    found: dict[tuple[str, int, str], Sample] = {}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in (*KEYS, "ms"))
        for *key, ms in zip(*columns, strict=True):
            sample = found.get(tuple(key))
            if sample is None:
                sample = found[tuple(key)] = Sample()
            sample.add(ms)
    rows = [{**dict(zip(KEYS, key, strict=True)), **_row(sample)} for key, sample in found.items()]
    yield pa.RecordBatch.from_pylist(rows, schema=SAMPLES)


def _row(sample: Sample) -> dict[str, Any]:
    bins = [sample.bins[index] for index in range(BINS)]
    return {"count": sample.count, "mean": sample.mean, "squares": sample.squares, "bins": bins}


def fold_of(engine: OrderedEngine, archive: Archive, namespace: str, since: int = 0) -> Fold:
    """Fold the figures by queue of the days from `since` (ms) on, up to the last event of an archive.

    If events were lost on their way into the archive, the fold begins behind them. Raises ArchiveError if the archive
    has gaps, and StatisticsError if it does not have the namespace.
    """
    if namespace not in archive.namespaces():
        raise StatisticsError(
            f"The archive {archive.root} has nothing of {namespace!r}; it has {archive.namespaces()}. Name it "
            f"with --namespace, or archive first: qmodel archive run {archive.root}"
        )
    return again_if_merged(lambda: _fold(engine, archive, namespace, since))


def _fold(engine: OrderedEngine, archive: Archive, namespace: str, since: int) -> Fold:
    at, holes = archive.position(namespace), archive.holes(namespace)
    fold = Fold(holes[-1].last if holes else 0)
    fold.last, fold.epoch = at
    define_views(engine, archive, {namespace: Range(0, fold.last)}, since=since)
    _count(engine, fold)
    for seq, moment, jid, event, queue, cause in engine.rows(_still("slim")):
        fold.jobs[jid] = _known(seq, moment, event, queue, cause)
    if holes:
        ((fold.began_at,),) = engine.rows(f"select min(moment) from slim where seq > {fold.after}")
    return fold


def _still(relation: str) -> str:
    columns = "seq, moment, jid, event, queue, cause"
    return f"select {columns} from ({sql.carried(relation)}) as kept where event in ('failed', 'lock_lost')"


def _known(seq: int, at: int, event: str, queue: str, cause: str) -> Known:
    known, keys = Known(""), (Key(at - at % sql.DAY, "queue", queue),)
    if event == "failed":
        known.failed = keys
    else:
        known.lost = Lost(seq, at, cause, keys)
    return known


def _count(engine: OrderedEngine, fold: Fold) -> None:
    def tally(queue: str, day: int) -> Tally:
        return fold.tallies.setdefault(Key(day, "queue", queue), Tally())

    durations = "select queue, day, measure, seq, ms from counted where measure in ('wait', 'run')"
    for queue, day, measure, *told, bins in engine.ordered(durations, KEYS, "seq", samples, SAMPLES):
        sample: Sample = getattr(tally(queue, day), measure)
        sample.count, sample.mean, sample.squares = told
        sample.bins.update({index: count for index, count in enumerate(bins) if count})
    rest = (
        "select queue, day, measure, detail, cast(sum(n) as bigint) as n from counted"
        " where measure in ('failed', 'recovered', 'retries') group by queue, day, measure, detail"
    )
    for queue, day, measure, group, count in engine.rows(rest):
        tally(queue, day).count(measure, group, count)

"""Verify that an archive has each event once, by the content of its files, not only by their names.

The sequences, epochs and days of each file are read and compared with its name. Together the files must have all
sequences from 1 to the last, each once, except recorded holes. And they must be of one history: an event of another
epoch than the one before it must be the one that begins this epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.pipeline.archive.commit import writing
from qmodel.pipeline.archive.kinds import EVENTS, opened
from qmodel.pipeline.archive.layout import Archive, Commit, File, Lost
from qmodel.pipeline.archive.write import day_of
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.schema import VERSION, current, version_of
from qmodel.processes import Run

TRIES = 3
"""The number of times that the files are listed again if some disappear meanwhile."""


class Begin(NamedTuple):
    """The first event of an epoch in a file; `previous` is the epoch before it, if the event says so."""

    seq: int
    epoch: int
    previous: int | None


class Content(NamedTuple):
    """The content of a file: its ranges of sequences without a gap, its faults, and its epochs."""

    file: File
    runs: tuple[Gap, ...]
    faults: tuple[str, ...]
    found: bool = True
    begins: tuple[Begin, ...] = ()


class Verdict(NamedTuple):
    """The result for a namespace: `missing` and `twice` are ranges, `faults` are sentences about files."""

    namespace: str
    last: int
    rows: int
    files: int
    holes: tuple[Gap, ...]
    missing: tuple[Gap, ...]
    twice: tuple[Gap, ...]
    faults: tuple[str, ...]
    lost: tuple[Lost, ...] = ()  # by the server, and moved out of the archive's files

    @property
    def whole(self) -> bool:
        """Whether each event is there once, except the holes."""
        return not (self.missing or self.twice or self.faults)


def verify(root: str, namespace: str | None = None, *, run: Run = map) -> Iterator[Verdict]:
    """Read all files of one namespace or of all; `run` calls a function for each file.

    Raises ArchiveError if there is no such namespace, or no archive.
    """
    archive = opened(root, EVENTS)
    for space in archive.chosen(namespace):
        for tries in range(TRIES):
            contents: list[Content] = list(run(inspect, [(archive.place, file) for file in archive.files(space)]))
            if all(one.found for one in contents) or tries == TRIES - 1:  # otherwise some files were merged meanwhile
                break
        yield judge(space, contents, archive.holes(space))._replace(lost=tuple(archive.lost(space)))


def judge(namespace: str, contents: Sequence[Content], holes: Sequence[Gap]) -> Verdict:
    """Combine the contents of a namespace's files into a verdict."""
    runs = [one for file in contents for one in file.runs]
    last, missing, twice = 0, [], []
    for one in sorted([*runs, *holes]):
        if one.first > last + 1:
            missing.append(Gap(last + 1, one.first - 1))
        elif one.first <= last:
            twice.append(Gap(one.first, min(one.last, last)))
        last = max(last, one.last)
    faults = tuple(fault for file in contents for fault in file.faults)
    faults += tuple(_mixed(contents, {hole.last for hole in holes}))
    rows = sum(map(len, runs))
    return Verdict(namespace, last, rows, len(contents), tuple(holes), tuple(missing), tuple(twice), faults)


def _mixed(contents: Sequence[Content], holes: Collection[int]) -> Iterator[str]:
    """Describe events that do not follow the one before them: they are of two histories. Nothing tells after a hole."""
    begins = sorted((begin, file.file.name) for file in contents for begin in file.begins)
    for (before, one), (begin, other) in pairwise(begins):
        if before.epoch not in (begin.epoch, begin.previous) and begin.seq - 1 not in holes:
            yield (
                f"{other}: event {begin.seq} is of epoch {begin.epoch}, after events of epoch {before.epoch} in {one}, "
                f"and does not begin it: these are two histories"
            )


def inspect(what: tuple[str, File]) -> Content:
    """Read the content of a file, and compare it with its name."""
    root, file = what
    archive = Archive(root)
    try:
        with archive.open(file) as opened:
            source = pq.ParquetFile(opened)
            for _ in source.iter_batches():  # columns that are not looked at may be damaged, too
                pass
            version = version_of(source.schema_arrow)
            table = current(
                source.read(
                    columns=["seq", *_moments(version), *(["epoch", "event", "previous"] if version > 1 else [])]
                )
            )
    except FileNotFoundError:
        return Content(file, (), (f"{file.name}: it is not there",), found=False)
    except (OSError, pa.ArrowInvalid) as error:
        return Content(file, (), (f"{file.name}: it cannot be read: {error}",))
    seqs = sorted(table.column("seq").to_pylist())
    begins = tuple(_begins(table)) if "epoch" in table.column_names else ()
    return Content(file, tuple(runs_of(seqs)), tuple(_faults(file, version, seqs, table, begins)), begins=begins)


def _moments(version: int) -> list[str]:
    """Name the column of moments in a version of the columns."""
    return ["at" if version < 3 else "happened_at"]


def _begins(table: pa.Table) -> Iterator[Begin]:
    """Find the first event of each epoch."""
    said = {}
    if "previous" in table.column_names:
        rows = table.filter(pc.equal(table.column("event"), "epoch_begun"))
        said = dict(zip(rows.column("seq").to_pylist(), rows.column("previous").to_pylist(), strict=True))
    for row in table.group_by("epoch").aggregate([("seq", "min")]).to_pylist():
        yield Begin(row["seq_min"], row["epoch"], said.get(row["seq_min"]))


def runs_of(seqs: Iterable[int]) -> Iterator[Gap]:
    """Join sorted sequences into ranges; a repeated sequence begins a new range.

    >>> list(runs_of([1, 2, 3, 3, 4, 7]))
    [Gap(first=1, last=3), Gap(first=3, last=4), Gap(first=7, last=7)]
    """
    first = last = None
    for seq in seqs:
        if first is None or last is None:
            first = seq
        elif seq != last + 1:
            yield Gap(first, last)
            first = seq
        last = seq
    if first is not None and last is not None:
        yield Gap(first, last)


def _faults(file: File, version: int, seqs: Sequence[int], table: pa.Table, begins: Sequence[Begin]) -> Iterator[str]:
    if not 0 < version <= VERSION:
        yield f"{file.name}: its columns have version {version or 'none'}, and this qmodel knows 1 to {VERSION}"
    if not seqs or (file.first, file.last, file.rows, file.version) != (seqs[0], seqs[-1], len(seqs), version):
        has = f"{seqs[0]} to {seqs[-1]}, {len(seqs)} of them, in version {version}" if seqs else "none"
        yield f"{file.name}: its name does not match its events: {has}"
    last = max(begins, default=Begin(0, file.epoch, None)).epoch
    if file.epoch != last:
        yield f"{file.name}: its last event is of epoch {last}"
    others = sorted({str(day.as_py().date()) for day in pc.unique(day_of(table))} - {file.day})
    if others:
        yield f"{file.name}: it has events of {', '.join(others)}"


def record_missing(root: str, verdict: Verdict) -> None:
    """Record missing events as holes, so that the archiver continues behind them."""
    archive = opened(root, EVENTS)
    with writing(archive, verdict.namespace) as writer:
        writer.commit(writer.begin(), Commit(holes=verdict.missing))

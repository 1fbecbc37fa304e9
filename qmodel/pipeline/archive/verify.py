"""Verify that an archive has each event once, by the content of its files, not only by their names.

The sequences and days of each file are read and compared with its name. Together the files must have all sequences from
1 to the last, each once, except recorded holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.pipeline.archive.commit import writing
from qmodel.pipeline.archive.layout import Archive, Commit, File
from qmodel.pipeline.archive.write import day_of
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.schema import VERSION, version_of
from qmodel.processes import Run

TRIES = 3
"""The number of times that the files are listed again if some disappear meanwhile."""


class Content(NamedTuple):
    """The content of a file: its ranges of sequences without a gap, and its faults."""

    file: File
    runs: tuple[Gap, ...]
    faults: tuple[str, ...]
    found: bool = True


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

    @property
    def whole(self) -> bool:
        """Whether each event is there once, except the holes."""
        return not (self.missing or self.twice or self.faults)


def verify(root: str, namespace: str | None = None, *, run: Run = map) -> Iterator[Verdict]:
    """Read all files of one namespace or of all; `run` calls a function for each file."""
    archive = Archive(root)
    for space in archive.namespaces() if namespace is None else [namespace]:
        for tries in range(TRIES):
            contents: list[Content] = list(run(inspect, [(archive.place, file) for file in archive.files(space)]))
            if all(one.found for one in contents) or tries == TRIES - 1:  # otherwise some files were merged meanwhile
                break
        yield judge(space, contents, archive.holes(space))


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
    rows = sum(map(len, runs))
    return Verdict(namespace, last, rows, len(contents), tuple(holes), tuple(missing), tuple(twice), faults)


def inspect(what: tuple[str, File]) -> Content:
    """Read the content of a file, and compare it with its name."""
    root, file = what
    archive = Archive(root)
    paths = [path for path in (file.path, archive.at(file.name)) if archive.fs.get_file_info(path).is_file]
    if not paths:
        return Content(file, (), (f"{file.name}: it is not there",), found=False)
    try:
        with archive.fs.open_input_file(paths[0]) as opened:
            source = pq.ParquetFile(opened)
            version = version_of(source.schema_arrow)
            table = source.read(columns=["seq", "at"])
    except (OSError, pa.ArrowInvalid) as error:
        return Content(file, (), (f"{file.name}: it cannot be read: {error}",))
    seqs = sorted(table.column("seq").to_pylist())
    return Content(file, tuple(runs_of(seqs)), tuple(_faults(file, version, seqs, table)))


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


def _faults(file: File, version: int, seqs: Sequence[int], table: pa.Table) -> Iterator[str]:
    if not 0 < version <= VERSION:
        yield f"{file.name}: its columns have version {version or 'none'}, and this qmodel knows 1 to {VERSION}"
    if not seqs or (file.first, file.last, file.rows, file.version) != (seqs[0], seqs[-1], len(seqs), version):
        has = f"{seqs[0]} to {seqs[-1]}, {len(seqs)} of them, in version {version}" if seqs else "none"
        yield f"{file.name}: its name does not match its events: {has}"
    others = sorted({str(day.as_py().date()) for day in pc.unique(day_of(table))} - {file.day})
    if others:
        yield f"{file.name}: it has events of {', '.join(others)}"


def record_missing(root: str, verdict: Verdict) -> None:
    """Record missing events as holes, so that the archiver continues behind them."""
    archive = Archive(root)
    with writing(archive, verdict.namespace) as writer:
        writer.commit(writer.begin(), Commit(holes=verdict.missing))

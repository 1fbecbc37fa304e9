"""Keep what was counted before, so that a run counts only new events, and counting twice changes nothing.

    <out>/runs/000001/counts.json   the ranges of events that were counted, by namespace
                      cells/        their cells
                      carried/      the events that a later run needs; kept for the last run only
    <out>/*.parquet                 the figures of all runs together, as tables for other tools (`tables`)

A run is made in a folder of its own and moved to its place by one rename, so it exists whole or not at all. It begins
where the run before ended, so no event is counted twice, and a missing run is noticed. One process counts at a time,
under a lock that ends with the process; it removes what a killed one left. Cells are sums of whole numbers and are
added when they are read, so the number of runs does not change the figures.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar
from uuid import uuid4

from qmodel.errors import QmodelError
from qmodel.pipeline.archive.commit import sync
from qmodel.pipeline.archive.layout import Archive, File
from qmodel.pipeline.events.schema import VERSION

TRIES = 5
"""The number of times that files are listed again if some were merged meanwhile."""

T = TypeVar("T")

COUNTS, CELLS, CARRIED = "counts.json", "cells", "carried"


class Range(NamedTuple):
    """The events of a namespace after a sequence, up to another, whose epoch is None if it is not known."""

    after: int
    until: int
    epoch: int | None = 0


class StatisticsError(QmodelError):
    """Raised if earlier counts do not fit the archive. The message says what to do."""


class FilesGone(StatisticsError):
    """Raised if a file of the archive is not where it was listed: it was merged meanwhile. See `again_if_merged`."""


def check_columns(archive: Archive, files: Iterable[File]) -> None:
    """Refuse files with the columns of an earlier version, which SQL would not find. Raises StatisticsError."""
    old = [file for file in files if file.version < VERSION]
    if old:
        raise StatisticsError(
            f"{old[0].name} in {archive.root} has the columns of version {old[0].version}, and SQL needs those of "
            f"version {VERSION}. Run `qmodel archive compact {archive.root}`: it gives all files the current columns."
        )


def again_if_merged(work: Callable[[], T]) -> T:
    """Do work on the files of an archive; list them again if some were merged meanwhile, and do it anew."""
    for _ in range(TRIES - 1):
        with suppress(FilesGone):
            return work()
    return work()


class Busy(StatisticsError):
    """Raised if another process counts into the folder."""


class Runs:
    """The runs in a folder."""

    def __init__(self, out: str) -> None:
        """Open a folder of runs; it need not exist yet."""
        self.out = Path(out)
        self.folder = self.out / "runs"

    def numbers(self) -> list[int]:
        """List the numbers of the runs, in order."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdigit())

    def counted(self) -> dict[str, int]:
        """Give the last counted event of each namespace. Raises StatisticsError if a run between is missing."""
        found: dict[str, int] = {}
        for number in self.numbers():
            for namespace, (after, until, _) in self._counts(number).items():
                if found.get(namespace, 0) != after:
                    raise StatisticsError(
                        f"Run {number} in {self.folder} counted {namespace!r} after event {after}, and those before it "
                        f"up to {found.get(namespace, 0)}: a run is missing. Use another folder for --out to "
                        f"count everything again."
                    )
                found[namespace] = until
        return found

    def last(self) -> dict[str, Range]:
        """Give the last counted range of each namespace."""
        found: dict[str, Range] = {}
        for number in self.numbers():
            found.update(self._counts(number))
        return found

    def cells(self, after: int = 0) -> list[str]:
        """List the folders with the cells of all runs, or of the runs after one."""
        return self.folders(CELLS, after)

    def folders(self, name: str, after: int = 0) -> list[str]:
        """List the folders of a name of all runs, or of the runs after one."""
        return [str(self._place(number) / name) for number in self.numbers() if number > after]

    def mark(self, number: int) -> str:
        """Identify a run; a later run with the same number has another mark."""
        made = self._place(number) / COUNTS
        return f"{number} {made.stat().st_mtime_ns}" if made.exists() else f"{number}"

    def carried(self) -> str | None:
        """Give the folder with the events that the last run carried over."""
        numbers = self.numbers()
        return str(self._place(numbers[-1]) / CARRIED) if numbers else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder. Raises Busy if another process of this machine holds the lock."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.out / "_lock").open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(
                    f"Another process counts into {self.out} now. Nothing was done. Wait until it ends, or stop it."
                ) from None
            for left in self.out.glob("_run-*"):
                shutil.rmtree(left)
            yield

    def begin(self) -> Path:
        """Make a folder for a new run."""
        folder = self.out / f"_run-{uuid4().hex}"
        folder.mkdir()
        return folder

    def commit(self, made: Path, ranges: Mapping[str, Range]) -> None:
        """Move a run to its place, after all of it is on the disk."""
        before = self.numbers()
        (made / COUNTS).write_text(json.dumps(ranges), encoding="utf-8")
        for path in (*made.rglob("*"), made):
            sync(str(path))
        os.rename(made, self._place(before[-1] + 1 if before else 1))
        sync(str(self.folder))
        for number in before:
            shutil.rmtree(self._place(number) / CARRIED, ignore_errors=True)

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:06}"

    def _counts(self, number: int) -> dict[str, Range]:
        said = json.loads((self._place(number) / COUNTS).read_text(encoding="utf-8"))
        return {namespace: Range(*pair) for namespace, pair in said.items()}

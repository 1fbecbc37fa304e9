"""Keep what was counted before, so that a run counts only new events, and counting twice changes nothing.

    <out>/runs/000001/counts.json   the ranges of events that were counted, by namespace
                      cells/        their cells
                      carried/      the events that a later run needs; kept for the last run only
    <out>/*.parquet                 the figures of all runs together, as tables for other tools (`tables`)

A run is made in a folder of its own and moved to its place by one rename, so it exists whole or not at all. It begins
where the run before ended, so no event is counted twice, and a missing run is noticed. One process counts at a time,
under a lock that ends with the process; it removes what a killed one left. Cells are sums of whole numbers and are
added when they are read, so the number of runs does not change the figures.

An object store (`qmodel.pipeline.archive.remote`) has no locks and no renames of folders. There `runs/000001.json`
names the folder of the run, and its conditional create decides: of two processes that count the same events, one adds
its run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from pyarrow import fs

from qmodel.errors import QmodelError
from qmodel.pipeline.archive.commit import sync
from qmodel.pipeline.archive.layout import Archive, File
from qmodel.pipeline.archive.remote import opened
from qmodel.pipeline.events.schema import VERSION

TRIES = 5
"""The number of times that files are listed again if some were merged meanwhile."""

T = TypeVar("T")

COUNTS, CELLS, CARRIED = "counts.json", "cells", "carried"

LEFT = 86_400
"""The seconds after which the folder of a run that was not added is removed from an object store."""


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
        self.out = str(out)
        self.folder = Path(out) / "runs"

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
        return [f"{self._place(number)}/{name}" for number in self.numbers() if number > after]

    def mark(self, number: int) -> str:
        """Identify a run; a later run with the same number has another mark."""
        made = Path(self._place(number), COUNTS)
        return f"{number} {made.stat().st_mtime_ns}" if made.exists() else f"{number}"

    def carried(self) -> str | None:
        """Give the folder with the events that the last run carried over."""
        numbers = self.numbers()
        return f"{self._place(numbers[-1])}/{CARRIED}" if numbers else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder. Raises Busy if another process of this machine holds the lock."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with Path(self.out, "_lock").open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(
                    f"Another process counts into {self.out} now. Nothing was done. Wait until it ends, or stop it."
                ) from None
            for left in Path(self.out).glob("_run-*"):
                shutil.rmtree(left)
            yield

    def begin(self) -> str:
        """Make a folder for a new run."""
        folder = Path(self.out, f"_run-{uuid4().hex}")
        folder.mkdir()
        return str(folder)

    def drop(self, made: str) -> None:
        """Remove the folder of a run that failed."""
        shutil.rmtree(made, ignore_errors=True)

    def commit(self, made: str, ranges: Mapping[str, Range]) -> None:
        """Move a run to its place, after all of it is on the disk."""
        before = self.numbers()
        Path(made, COUNTS).write_text(json.dumps(ranges), encoding="utf-8")
        for path in (*Path(made).rglob("*"), made):
            sync(str(path))
        os.rename(made, self._place(before[-1] + 1 if before else 1))
        sync(str(self.folder))
        for number in before:
            shutil.rmtree(f"{self._place(number)}/{CARRIED}", ignore_errors=True)

    def table(self, name: str) -> tuple[Any, str]:
        """Give the file system and the path of a published table, or of one that is being made."""
        return fs.LocalFileSystem(), f"{self.out}/{name}.parquet"

    def publish(self, made: str, name: str) -> None:
        """Put a table that was made in the place of another one, at once."""
        sync(self.table(made)[1])
        os.replace(self.table(made)[1], self.table(name)[1])

    def _place(self, number: int) -> str:
        return f"{self.folder}/{number:06}"

    def _counts(self, number: int) -> dict[str, Range]:
        path = Path(self._place(number), COUNTS)
        return _read(path, lambda: _ranges(json.loads(path.read_text(encoding="utf-8"))))


def _read(place: object, read: Callable[[], T]) -> T:
    """Read what a run counted. Raises StatisticsError if the file is damaged or gone."""
    try:
        return read()
    except (FileNotFoundError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise StatisticsError(
            f"{place} is damaged: {error}. Use another folder for --out to count everything again."
        ) from None


def _ranges(said: Mapping[str, Any]) -> dict[str, Range]:
    return {namespace: Range(*pair) for namespace, pair in said.items()}


class RemoteRuns(Runs):
    """The runs on an object store."""

    def __init__(self, out: str) -> None:
        super().__init__(out)
        self.out = out.rstrip("/")
        try:
            self._fs, self._path, remote = opened(self.out)
        except (OSError, ValueError, QmodelError) as error:
            raise StatisticsError(f"{out} cannot hold runs: {error}. Give a folder, or a URL such as s3://.") from None
        if remote is None:
            raise StatisticsError(f"{out} cannot hold runs: fsspec does not know it, so two processes might both add.")
        self._remote = remote

    def numbers(self) -> list[int]:
        """List the numbers of the runs, in order."""
        return sorted(int(found[1]) for name in self._names("runs") if (found := re.fullmatch(r"(\d+)\.json", name)))

    def mark(self, number: int) -> str:
        """Identify a run; a later run with the same number has another mark."""
        return f"{number} {self._said(number)['folder']}" if number in self.numbers() else f"{number}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Remove folders of runs that were not added a day ago. Others may count at the same time: see `commit`."""
        known = {self._said(number)["folder"] for number in self.numbers()}
        for name in set(self._names("")) - known:
            if (found := re.fullmatch(r"_run-(\d+)-\w+", name)) and int(found[1]) < time.time() - LEFT:
                self.drop(f"{self.out}/{name}")
        yield

    def begin(self) -> str:
        """Name a folder for a new run."""
        return f"{self.out}/_run-{int(time.time())}-{uuid4().hex}"

    def drop(self, made: str) -> None:
        """Remove the folder of a run that failed or was not added."""
        self._drop(made.rpartition("/")[2])

    def commit(self, made: str, ranges: Mapping[str, Range]) -> None:
        """Add a run, if it follows the last one. Raises Busy if another process has added that run before."""
        before, counted = self.numbers(), self.counted()
        said = {"folder": made.rpartition("/")[2], "ranges": ranges}
        path = self._at(f"runs/{before[-1] + 1 if before else 1:06}.json")
        try:
            if any(counted.get(namespace, 0) != one.after for namespace, one in ranges.items()):
                raise FileExistsError(path)
            self._fs.create_dir(self._at("runs"), recursive=True)
            self._remote.create(path, json.dumps(said).encode())
        except FileExistsError:
            self.drop(made)
            raise Busy(f"Another process counted into {self.out} meanwhile. Nothing was added. Run it again.") from None
        for number in before[-1:]:
            self._drop(f"{self._said(number)['folder']}/{CARRIED}")

    def table(self, name: str) -> tuple[Any, str]:
        """Give the file system and the path of a published table, or of one that is being made."""
        return self._fs, self._at(f"{name}.parquet")

    def publish(self, made: str, name: str) -> None:
        """Put a table that was made in the place of another one, at once."""
        self._remote.move(self._at(f"{made}.parquet"), self._at(f"{name}.parquet"))

    def _place(self, number: int) -> str:
        return f"{self.out}/{self._said(number)['folder']}"

    def _counts(self, number: int) -> dict[str, Range]:
        return _read(self._at(f"runs/{number:06}.json"), lambda: _ranges(self._said(number)["ranges"]))

    def _said(self, number: int) -> dict[str, Any]:
        with self._fs.open_input_stream(self._at(f"runs/{number:06}.json"), compression=None) as file:
            found: dict[str, Any] = json.loads(file.read())
        return found

    def _drop(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.delete_dir(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"

    def _names(self, folder: str) -> list[str]:
        where = fs.FileSelector(self._at(folder).rstrip("/"), allow_not_found=True)
        return [one.base_name for one in self._fs.get_file_info(where)]


def runs_at(out: str) -> Runs:
    """Open the runs in a folder, or at a URL of fsspec; they need not exist yet. Raises StatisticsError."""
    return RemoteRuns(out) if "://" in out else Runs(out)

"""What was counted before: so that a run counts only what is new, and counting twice changes nothing.

    <out>/runs/000001/counts.json   which events of which namespace were counted: after which, up to which
                      cells/        their cells
                      carried/      the events that those after them will need; kept of the last run alone
    <out>/*.parquet                 the figures of all runs together, for whoever wants tables (`tables`)

A run is made in a folder of its own and moved to its place by one rename: it has happened, or it has not. It begins
where the one before ended, so none is counted twice, and what is gone between is noticed. One process counts at a time,
under a lock that ends with it; what another that was killed has left, it removes. Cells are added up whenever they are
asked for: sums of whole numbers, so that in how many runs they came is not to be seen.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from qmodel.errors import QmodelError
from qmodel.pipeline.archive.commit import sync

COUNTS, CELLS, CARRIED = "counts.json", "cells", "carried"


class Range(NamedTuple):
    """The events of a namespace after one sequence, up to another."""

    after: int
    until: int


class StatisticsError(QmodelError):
    """What was counted before does not fit what is there; the sentence says what to do."""


class Busy(StatisticsError):
    """Another process counts into the folder."""


class Runs:
    """The runs in a folder."""

    def __init__(self, out: str) -> None:
        """`out` need not be there yet."""
        self.out = Path(out)
        self.folder = self.out / "runs"

    def numbers(self) -> list[int]:
        """The runs that there are, in their order."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdigit())

    def counted(self) -> dict[str, int]:
        """Up to which event each namespace was counted. Raises StatisticsError where a run is missing between."""
        found: dict[str, int] = {}
        for number in self.numbers():
            for namespace, (after, until) in self._counts(number).items():
                if found.get(namespace, 0) != after:
                    raise StatisticsError(
                        f"Run {number} in {self.folder} counted {namespace!r} after event {after}, and those before it "
                        f"up to {found.get(namespace, 0)}: a run is missing. Take another folder for --out, and all is "
                        f"counted anew."
                    )
                found[namespace] = until
        return found

    def cells(self, after: int = 0) -> list[str]:
        """The folders with the cells of all runs, or of those after one."""
        return [str(self._place(number) / CELLS) for number in self.numbers() if number > after]

    def mark(self, number: int) -> str:
        """What tells a run from all others, also from one that takes its number after it was removed."""
        made = self._place(number) / COUNTS
        return f"{number} {made.stat().st_mtime_ns}" if made.exists() else f"{number}"

    def carried(self) -> str | None:
        """The folder with what the last run carried over."""
        numbers = self.numbers()
        return str(self._place(numbers[-1]) / CARRIED) if numbers else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the one that counts. Raises Busy where another process of this machine is that."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.out / "_lock").open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(
                    f"Another process counts into {self.out} just now. Nothing was done; wait for it, or stop it."
                ) from None
            for left in self.out.glob("_run-*"):
                shutil.rmtree(left)
            yield

    def begin(self) -> Path:
        """A folder in which a run is made."""
        folder = self.out / f"_run-{uuid4().hex}"
        folder.mkdir()
        return folder

    def commit(self, made: Path, ranges: Mapping[str, Range]) -> None:
        """Move a run to its place, once all of it is on the disk."""
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

"""Read a journal as far as it is whole, and say what is damaged.

A start that finds damage is refused; a salvage uses the rest. Both read here, so that what a refusal promises is what
the salvage gives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qmodel.model.state.store import Store
from qmodel.serve import files, log_file, snapshot_bytes
from qmodel.serve.files import Bad, Manifest
from qmodel.serve.log_file import Log, Mark
from qmodel.serve.namespaces import Spaces
from qmodel.serve.snapshot_file import Part, Snapshot

Key = tuple[int, str]

EMPTY = hashlib.sha256().hexdigest()
"""The digest of a snapshot without parts."""


class Reading:
    """What was read: the `damage`, and how much there is.

    `restore` comes first, then `replay`. `partial` has the namespaces that could not be restored as a whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damage: list[str] = []
        self.manifest = self._manifest()
        self.generation = self.manifest.generation if self.manifest else _likely(folder)
        self.mark = self._mark()
        self.parts = self.entries = self.torn = 0
        self.end = Mark(0, 0, 0)
        self.log = f"log-{self.generation}"
        self.partial: dict[Key, Store] = {}
        self._whole: set[Key] = set()
        self._is_complete = True

    @property
    def readable(self) -> str:
        """Say how much is readable."""
        parts = f"{self.parts} of {self.manifest.parts}" if self.manifest else f"{self.parts}"
        entries = f"{self.entries} of {self.mark.entries} acknowledged" if self.mark else f"{self.entries}"
        return f"Readable are {parts} parts of the snapshot and {entries} entries of the log."

    def restore(self, spaces: Spaces) -> None:
        """Restore the namespaces whose parts of the snapshot are whole."""
        snapshot = Snapshot(files.path(self.folder, "snapshot", self.generation), self.manifest)
        seen: dict[Key, list[tuple[int, int]]] = {}
        for part in snapshot.parts():
            if self._restore_part(part):
                seen.setdefault((part.db, part.prefix), []).append((part.number, part.of))
        self.damage += snapshot.damage
        for key, found in seen.items():
            if found == [(number, found[0][1]) for number in range(found[0][1])]:
                spaces.of(*key).store = self.partial.pop(key)
                self._whole.add(key)
        self._is_complete = not (snapshot.damage or self.partial)

    def _restore_part(self, part: Part) -> bool:
        self.parts += 1
        store = self.partial.setdefault((part.db, part.prefix), Store())
        try:
            snapshot_bytes.restore(store, part.number, part.data)
        except ValueError as error:
            self.damage.append(f"part {part.number + 1} of the namespace {part.prefix!r} cannot be restored: {error}")
            return False
        return True

    def replay(self, apply: Callable[[list[Any]], object]) -> None:
        """Replay the whole commits of the log up to the first damage, for the namespaces that are restored."""
        digest = self.manifest.sha256 if self.manifest else None
        log = Log(files.path(self.folder, "log", self.generation), self.mark, self.generation, digest)
        for entries in log.commits():
            for entry in entries:
                if self._is_based(log, entry):
                    apply(entry)
                    self.entries += 1
        self.end, self.torn = log.end, log.torn
        if log.damage:
            self.damage.append(log.damage)

    def _is_based(self, log: Log, entry: list[Any]) -> bool:
        """Whether the state before an entry was restored."""
        if self._is_complete or entry[0] == "clear" or log.digest == EMPTY:
            return True
        return (entry[1], entry[2]) in self._whole

    def _manifest(self) -> Manifest | None:
        try:
            found = files.read_manifest(self.folder)
        except FileNotFoundError:
            self.damage.append(f"{files.MANIFEST} is missing")
            return None
        except Bad as error:
            self.damage.append(str(error))
            return None
        newer = [one for one in files.generations(self.folder) if one > found.generation]
        if any(acknowledged(self.folder, one) for one in newer):
            self.damage.append(f"{files.MANIFEST} names generation {found.generation}, but there is {newer[0]}")
            return None
        return found

    def _mark(self) -> Mark | None:
        try:
            return log_file.read_mark(files.path(self.folder, "mark", self.generation))
        except Bad as error:
            self.damage.append(str(error))
            return None


def acknowledged(folder: Path, generation: int) -> int:
    """Give the number of acknowledged entries of a generation; 0 if there is no mark that can be read."""
    try:
        return log_file.read_mark(files.path(folder, "mark", generation)).entries
    except Bad:
        return 0


def _likely(folder: Path) -> int:
    """Choose the generation to read without a manifest: the newest with a whole snapshot, or else the newest."""
    found = files.generations(folder)
    for one in found:
        snapshot = Snapshot(files.path(folder, "snapshot", one), None)
        for _ in snapshot.parts():
            pass
        if not snapshot.damage:
            return one
    return found[0] if found else 0

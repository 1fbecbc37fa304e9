"""The journal: every change, written to disk before its reply is sent.

**Theory of operation.** Two things are promised. After a crash every acknowledged operation is there, and none in part.
When files are damaged, by a disk, a tool or a hand, the server either has every acknowledged operation or refuses to
start; it never starts with less, unless `--salvage` asks for it.

The folder holds one *generation* of three files, and a manifest that names it:

    manifest        the generation, and the size, the number of parts and the SHA-256 of its snapshot
    snapshot-<n>    the whole state when the generation began; each part has a checksum (`snapshot_file`)
    log-<n>         the changes since then, a line each, with checksums that form a chain (`log_file`)
    mark-<n>        how far the log is acknowledged: its length, number of entries and last checksum

*Commit.* All changes of one turn of the event loop are one commit. It is appended to the log, the server waits for the
disk, writes the mark, and sends the replies. So the mark never tells of more than the log holds, and a killed server
leaves a mark that tells of every acknowledged operation. The mark does not wait for the disk: that would double the
cost of a commit, and after a power failure an old mark is still true.

*Snapshot.* From time to time, and at a clean stop, a new generation begins: snapshot, log and mark are written under
new names, then the manifest is replaced by a rename, then the old files are deleted. A crash before the rename leaves
the old generation, a crash after it the new one; both have the same state. All four files are demanded at every start,
also after a clean stop: there is no state in which a missing file means an empty one.

*Torn tail.* A crash during an append leaves the beginning of a commit, or a commit with holes, at the end of the log.
Its replies were not sent. So bytes after the last whole commit are cut off, with a line in the server's log, if they
lie behind the mark and hold at most one commit. Anything else is damage: bytes that the mark has acknowledged, or
several commits after a bad one, because no commit is begun before the last one is on the disk.

*What cannot be told.* After a power failure that lost the mark, damage to nothing but the very last commit looks like a
torn one. A whole folder that is replaced by an older copy of itself looks like the older state.

*Salvage.* The damaged files are copied to a folder of their own. Namespaces whose parts of the snapshot are whole are
restored, the log is replayed up to the damage, and a new generation begins. Readable jobs of the other namespaces are
written to `jobs.jsonl` there.

An entry is a JSON array that can be replayed: `[what, db, prefix, sequence, ...]`. The sequence is that of the last
event after the change. If the replay gives another one, the model has changed since the entry was written, and the
server refuses to start.

    operation   [..., name, now, request, argument ...]     wake, push    [..., queue]
    dialect     [..., name, argument ...]                   clear         [what, db or null, prefix or null]
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from qmodel.serve import files, log_file, salvage, snapshot_file
from qmodel.serve.disk import DISK, Disk
from qmodel.serve.files import DamagedError, JournalError
from qmodel.serve.namespaces import Space, Spaces
from qmodel.serve.reading import Reading, acknowledged
from qmodel.version import __version__

LOG = logging.getLogger("qmodel.serve")

EVERY: Final = 100_000
"""Entries between snapshots; if there are more jobs than this, as many entries as jobs. So the cost of snapshots is a
small constant for each operation."""

Entry = list[Any]

__all__ = ["EVERY", "DamagedError", "Journal", "JournalError"]


class Journal:
    """The journal in a folder. It makes the folder if needed, and locks it while it is open.

    Call `recover` or `salvage` first: they read the files, and open the log for writing.
    """

    def __init__(self, folder: str, every: int = EVERY, disk: Disk = DISK) -> None:
        self._disk = disk
        self.folder = Path(folder)
        self.every = every
        self._pending: list[str] = []
        self._writer: log_file.Writer | None = None
        self._generation = 0
        self._lock = disk.lock(self.folder)

    @property
    def dirty(self) -> bool:
        """Whether entries have to be written before replies are sent."""
        return bool(self._pending)

    # ---- entries

    def operation(self, space: Space, name: str, now: int, words: Sequence[str]) -> None:
        """Add an executed operation; `words` are its request id and its arguments."""
        self._pending.append(_text(["operation", space.db, space.prefix, space.store.seq, name, now, *words]))

    def dialect(self, space: Space, name: str, words: Sequence[str]) -> None:
        """Add an executed call of a dialect; it may have been several operations."""
        self._pending.append(_text(["dialect", space.db, space.prefix, space.store.seq, name, *words]))

    def wake(self, space: Space, queue: str) -> None:
        """Add that a wake-up was consumed."""
        self._pending.append(_text(["wake", space.db, space.prefix, space.store.seq, queue]))

    def push(self, space: Space, queue: str) -> None:
        """Add that a wake-up was given back."""
        self._pending.append(_text(["push", space.db, space.prefix, space.store.seq, queue]))

    def cleared(self, db: int | None, prefix: str | None) -> None:
        """Add that namespaces were emptied."""
        self._pending.append(_text(["clear", db, prefix]))

    # ---- writing

    def commit(self) -> None:
        """Write the pending entries, and wait for the disk. After a JournalError their replies must not be sent."""
        pending, self._pending = self._pending, []
        assert self._writer is not None
        try:
            self._writer.commit(pending)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> JournalError:
        return JournalError(
            f"The journal in {self.folder} cannot be written: {error.strerror}.",
            "Check the disk and start again: no acknowledged operation is lost.",
        )

    def is_long(self, spaces: Spaces) -> bool:
        """Whether it is time for a snapshot."""
        entries = self._writer.at.entries if self._writer else 0
        return entries >= self.every and entries >= sum(len(space.store.jobs) for space in spaces)

    def snapshot(self, spaces: Spaces) -> None:
        """Write the whole state, and begin a new generation."""
        if self._pending:
            self.commit()
        try:
            self._begin(spaces)
        except OSError as error:
            raise JournalError(
                f"No snapshot can be written in {self.folder}: {error.strerror}.", "Check the disk and start again."
            ) from error

    def close(self) -> None:
        """Close the log, and unlock the folder."""
        if self._writer is not None:
            self._writer.close()
        self._disk.unlock(self._lock)

    def _begin(self, spaces: Spaces) -> None:
        disk = self._disk
        generation = max([self._generation, *files.generations(self.folder)]) + 1
        manifest = snapshot_file.write(disk, self._path("snapshot", generation), spaces, generation)
        begun = log_file.begin(disk, self._path("log", generation), generation, manifest.sha256)
        writer = log_file.Writer(disk, self._path("log", generation), self._path("mark", generation), begun)
        disk.sync_folder(self.folder)
        self._write_manifest(manifest)
        old, self._writer, self._generation = self._writer, writer, generation
        if old is not None:
            old.close()
        self._remove_others()

    def _write_manifest(self, manifest: files.Manifest) -> None:
        """Replace the manifest, and wait for the disk."""
        new = self.folder / f"{files.MANIFEST}.new"
        with self._disk.create(new) as file:
            file.write(files.manifest_bytes(manifest))
            self._disk.finish(file)
        self._disk.replace(new, self.folder / files.MANIFEST)
        self._disk.sync_folder(self.folder)

    def _remove_others(self) -> None:
        """Delete the files of all other generations."""
        for other in files.generations(self.folder):
            for kind in files.KINDS:
                if other != self._generation:
                    self._disk.remove(self._path(kind, other))

    def _path(self, kind: str, generation: int) -> Path:
        return files.path(self.folder, kind, generation)

    # ---- reading

    def recover(self, spaces: Spaces, replay: Callable[[Entry], int]) -> int:
        """Restore the state from the snapshot and the log; give the number of entries.

        `replay` applies an entry, and gives the sequence after it. Raises DamagedError when anything is damaged, and
        JournalError when the replay gives another sequence.
        """
        if self._is_fresh():
            self.snapshot(spaces)
            return 0
        found = self._read(spaces, replay)
        if found.damage:
            raise DamagedError(
                f"The journal in {self.folder} is damaged: {'; '.join(found.damage)}. {found.readable}",
                "Restore the folder from a backup, or start once with --salvage, which starts with what is readable "
                "and keeps the damaged files.",
            )
        try:
            self._continue(found)
        except OSError as error:
            raise self._unwritable(error) from error
        return found.entries

    def salvage(self, spaces: Spaces, replay: Callable[[Entry], int]) -> None:
        """Restore what is readable, keep copies of the files, and begin a new generation. `spaces` are empty."""
        try:
            aside = salvage.keep(self.folder)
            found = self._read(spaces, replay)
            lines = salvage.write_jobs(aside / "jobs.jsonl", found.partial)
        except OSError as error:
            raise JournalError(
                f"The damaged files in {self.folder} cannot be copied: {error.strerror or error}.",
                "Make room on the disk, and start again: nothing was changed.",
            ) from error
        LOG.warning(
            "The journal in %s was damaged: %s. %s The damaged files are in %s, and %d jobs of namespaces that were "
            "not restored in its jobs.jsonl.",
            self.folder, "; ".join(found.damage), found.readable, aside, lines,
        )  # fmt: skip
        self.snapshot(spaces)

    def _read(self, spaces: Spaces, replay: Callable[[Entry], int]) -> Reading:
        found = Reading(self.folder)
        try:
            found.restore(spaces)
            found.replay(lambda entry: self._replay(found, entry, replay))
        except OSError as error:
            raise JournalError(
                f"The journal in {self.folder} cannot be read: {error.strerror}.",
                "Check the disk, and whose folder it is.",
            ) from error
        return found

    def _replay(self, found: Reading, entry: Entry, replay: Callable[[Entry], int]) -> None:
        try:
            seq = replay(entry)
            outcome = "" if entry[0] == "clear" or seq == entry[3] else f"gave event {seq}, not {entry[3]}"
        except (ValueError, LookupError) as error:
            outcome = f"failed ({error})"
        if outcome:
            written = found.manifest.version if found.manifest else "another version"
            raise JournalError(
                f"Replaying entry {found.entries + 1} of the journal in {self.folder} {outcome}: "
                f"it was written by qmodel {written}, and this is {__version__}.",
                "Start the version that wrote it, and stop it cleanly: then only a snapshot is left to read.",
            )

    def _continue(self, found: Reading) -> None:
        """Open the log for writing after its last commit, without a torn tail."""
        if found.torn:
            LOG.warning("%d bytes of a commit that was never acknowledged were cut off %s", found.torn, found.log)
        self._generation = found.generation
        log, mark = (self._path(kind, found.generation) for kind in ("log", "mark"))
        self._writer = log_file.Writer(self._disk, log, mark, found.end)
        self._remove_others()

    def _is_fresh(self) -> bool:
        """Whether the folder has no journal yet, or one whose first generation was never completed."""
        if (self.folder / files.MANIFEST).exists():
            return False
        if (self.folder / files.OLD).exists():
            raise JournalError(
                f"The journal in {self.folder} has the format of an earlier build of qmodel.",
                "Finish its jobs with that build, or choose another folder for --data.",
            )
        return all(generation == 1 and self._is_unused() for generation in files.generations(self.folder))

    def _is_unused(self) -> bool:
        """Whether the first generation was left by a crash before it was used: there are no parts and no entries."""
        snapshot, log, mark = (self._path(kind, 1) for kind in files.KINDS)
        sizes = [one.stat().st_size if one.exists() else 0 for one in (snapshot, log, mark)]
        if sizes[0] >= 100 or sizes[1] >= 300 or log_file.has_entries(log):
            return False
        return sizes[2] == 0 or acknowledged(self.folder, 1) == 0


def _text(entry: Entry) -> str:
    return json.dumps(entry, separators=(",", ":"))

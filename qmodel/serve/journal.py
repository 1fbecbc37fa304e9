"""The journal: every change, written to disk before its reply is sent.

It is one SQLite database in write-ahead mode, and its commits wait for the disk. All changes of one turn of the event
loop are one commit, made before any of their replies is sent. So after a crash every acknowledged operation is there,
and none in part.

An entry is a line of JSON that can be replayed: `[what, db, prefix, sequence, ...]`. The sequence is that of the last
event after the change. If the replay gives another one, the model has changed since the entry was written, and the
server refuses to start. From time to time the whole state is written as a snapshot, in the same commit that deletes the
entries before it.

    operation   [..., name, now, request, argument ...]     wake    [..., queue]
    dialect     [..., name, argument ...]                   clear   [what, db or null, prefix or null]
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from qmodel.errors import ConnectError
from qmodel.serve import snapshot_bytes
from qmodel.serve.namespaces import Space, Spaces
from qmodel.version import __version__

FILE: Final = "journal.sqlite3"
FORMAT: Final = 1
APPLICATION: Final = 0x716D6F64
"""The SQLite application id of the file: `qmod`."""

EVERY: Final = 100_000
"""Entries between snapshots; if there are more jobs than this, as many entries as jobs. So the cost of snapshots is a
small constant for each operation."""

_TABLES: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE entries (id INTEGER PRIMARY KEY, crc INTEGER, entry TEXT);
CREATE TABLE snapshot (id INTEGER PRIMARY KEY, db INTEGER, prefix TEXT, number INTEGER, crc INTEGER, part BLOB);
"""

Entry = list[Any]


class JournalError(ConnectError):
    """The journal cannot be used, or can no longer be written."""


class Journal:
    """The journal in a folder. It makes the folder if needed, and locks it while it is open."""

    def __init__(self, folder: str, every: int = EVERY) -> None:
        self.folder = Path(folder)
        self.every = every
        self._pending: list[str] = []
        self._entries = 0
        self._lock = _lock(self.folder)
        try:
            self._db = self._open()
        except BaseException:
            os.close(self._lock)
            raise

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

    def cleared(self, db: int | None, prefix: str | None) -> None:
        """Add that namespaces were emptied."""
        self._pending.append(_text(["clear", db, prefix]))

    # ---- writing

    def commit(self) -> None:
        """Write the pending entries, and wait for the disk. After a JournalError their replies must not be sent."""
        pending, self._pending = self._pending, []
        rows = [(zlib.crc32(entry.encode()), entry) for entry in pending]
        try:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO entries (crc, entry) VALUES (?, ?)", rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise JournalError(
                f"The journal in {self.folder} cannot be written: {error}.",
                "Check the disk and start again: no acknowledged operation is lost.",
            ) from error
        self._entries += len(rows)

    def is_long(self, spaces: Spaces) -> bool:
        """Whether it is time for a snapshot."""
        return self._entries >= self.every and self._entries >= sum(len(space.store.jobs) for space in spaces)

    def snapshot(self, spaces: Spaces) -> None:
        """Write the whole state, and delete the entries before it."""
        if self._pending:
            self.commit()
        try:
            self._db.execute("BEGIN")
            self._db.execute("DELETE FROM snapshot")
            self._db.executemany(
                "INSERT INTO snapshot (db, prefix, number, crc, part) VALUES (?, ?, ?, ?, ?)", _rows(spaces)
            )
            self._db.execute("DELETE FROM entries")
            self._db.execute("INSERT OR REPLACE INTO facts VALUES ('version', ?)", (__version__,))
            self._db.execute("COMMIT")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise JournalError(
                f"No snapshot can be written in {self.folder}: {error}.", "Check the disk and start again."
            ) from error
        self._entries = 0

    def close(self) -> None:
        """Close the database, and unlock the folder."""
        self._db.close()
        os.close(self._lock)

    # ---- reading

    def recover(self, spaces: Spaces, replay: Callable[[Entry], int]) -> int:
        """Restore the state from the snapshot and the entries; give the number of entries.

        `replay` applies an entry, and gives the sequence after it. Raises JournalError when anything is damaged, or
        when the replay gives another sequence.
        """
        try:
            for db, prefix, number, crc, part in self._db.execute(
                "SELECT db, prefix, number, crc, part FROM snapshot ORDER BY id"
            ):
                if zlib.crc32(part) != crc:
                    raise ValueError("a part of the snapshot does not match its checksum")
                snapshot_bytes.restore(spaces.of(db, prefix).store, number, part)
            for found in self._read():
                self._replay(found, replay)
        except (sqlite3.Error, ValueError) as error:
            raise self._damaged(str(error)) from error
        return self._entries

    def _read(self) -> Iterator[Entry]:
        for number, crc, text in self._db.execute("SELECT id, crc, entry FROM entries ORDER BY id"):
            self._entries += 1
            if number != self._entries:
                raise ValueError(f"entry {number} was found instead of entry {self._entries}")
            if zlib.crc32(text.encode()) != crc:
                raise ValueError(f"entry {number} does not match its checksum")
            yield json.loads(text)

    def _replay(self, entry: Entry, replay: Callable[[Entry], int]) -> None:
        seq = replay(entry)
        if entry[0] != "clear" and seq != entry[3]:
            written = self._db.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()[0]
            raise JournalError(
                f"Replaying entry {self._entries} of the journal in {self.folder} gave event {seq}, not {entry[3]}: "
                f"it was written by qmodel {written}, and this is {__version__}.",
                "Start the version that wrote it, and stop it cleanly: then only a snapshot is left to read.",
            )

    def _open(self) -> sqlite3.Connection:
        path = self.folder / FILE
        try:
            db = sqlite3.connect(path, timeout=1, isolation_level=None)
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            self._check(db)
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from error
        return db

    def _check(self, db: sqlite3.Connection) -> None:
        """Initialise a new file; refuse a file that is damaged, not a journal, or of a newer format."""
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if empty and not application:
            db.executescript(
                f"BEGIN; {_TABLES} INSERT INTO facts VALUES ('version', '{__version__}');"
                f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT;"
            )
        elif application != APPLICATION:
            raise JournalError(f"{self.folder / FILE} is not a journal of qmodel.", "Choose another folder for --data.")
        elif version > FORMAT:
            raise JournalError(
                f"The journal in {self.folder} has format {version}; qmodel {__version__} reads only format {FORMAT}.",
                "Upgrade qmodel, or choose another folder for --data.",
            )
        elif (said := db.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
            raise self._damaged(said)

    def _damaged(self, why: str) -> JournalError:
        if "locked" in why:
            return JournalError(
                f"Another program has the journal in {self.folder} open.", "Close that program, and start again."
            )
        return JournalError(
            f"The journal in {self.folder} is damaged: {why.rstrip('.')}.",
            "Restore the folder from a backup, or move it away to start with an empty one.",
        )


def _text(entry: Entry) -> str:
    return json.dumps(entry, separators=(",", ":"))


def _rows(spaces: Spaces) -> Iterator[tuple[int, str, int, int, bytes]]:
    for space in spaces:
        for number, part in enumerate(snapshot_bytes.parts(space.store)):
            yield space.db, space.prefix, number, zlib.crc32(part), part


def _lock(folder: Path) -> int:
    """Lock a folder, for as long as this process lives or until the lock is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise JournalError(
            f"Nothing can be kept in {folder}: {error.strerror}.", "Choose another folder for --data."
        ) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(held, 20, 0).decode(errors="replace").strip()
        os.close(held)
        raise JournalError(
            f"Another server (process {owner}) has the folder {folder}.",
            "Stop it, or choose another folder for --data.",
        ) from None
    os.ftruncate(held, 0)
    os.pwrite(held, str(os.getpid()).encode(), 0)
    return held

"""The journal: every change, on the disk before it is answered.

One SQLite database in write-ahead mode, whose commits wait for the disk. What happens in one turn of the event loop is
one commit, made before any of it is answered: so after a crash every acknowledged operation is there, and none in part.

An entry is a line of JSON that can be replayed: `[what, db, prefix, sequence, ...]`, where the sequence is that of the
last event after the change; if the replay comes to another one, the model has changed its mind since, and nothing is
served. Every so often the whole state is written as a snapshot, in the same commit that deletes the entries before it.

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

from qmodel import __version__
from qmodel.errors import ConnectError
from qmodel.serve import snapshot_bytes
from qmodel.serve.namespaces import Space, Spaces

FILE: Final = "journal.sqlite3"
FORMAT: Final = 1
APPLICATION: Final = 0x716D6F64
"""What marks the file as ours: `qmod`."""

EVERY: Final = 100_000
"""After so many entries, or as many as there are jobs if that is more, a snapshot is made: so the work for it is
a small constant for each operation."""

_TABLES: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE entries (id INTEGER PRIMARY KEY, crc INTEGER, entry TEXT);
CREATE TABLE snapshot (id INTEGER PRIMARY KEY, db INTEGER, prefix TEXT, number INTEGER, crc INTEGER, part BLOB);
"""

Entry = list[Any]


class JournalError(ConnectError):
    """The journal cannot be used, or can no longer be written."""


class Journal:
    """The journal in a folder, which it makes if need be, and keeps for itself while it is open."""

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
        """Whether something is to be written before anybody is answered."""
        return bool(self._pending)

    # ---- what is told

    def operation(self, space: Space, name: str, now: int, words: Sequence[str]) -> None:
        """Note an operation that was executed; `words` are its request and its arguments."""
        self._pending.append(_text(["operation", space.db, space.prefix, space.store.seq, name, now, *words]))

    def dialect(self, space: Space, name: str, words: Sequence[str]) -> None:
        """Note a call of a dialect, which may have been several operations."""
        self._pending.append(_text(["dialect", space.db, space.prefix, space.store.seq, name, *words]))

    def wake(self, space: Space, queue: str) -> None:
        """Note that a wake-up was handed over."""
        self._pending.append(_text(["wake", space.db, space.prefix, space.store.seq, queue]))

    def cleared(self, db: int | None, prefix: str | None) -> None:
        """Note that namespaces were emptied."""
        self._pending.append(_text(["clear", db, prefix]))

    # ---- writing

    def commit(self) -> None:
        """Write what is pending, and wait for the disk. Raises JournalError: then nothing of it may be answered."""
        pending, self._pending = self._pending, []
        rows = [(zlib.crc32(entry.encode()), entry) for entry in pending]
        try:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO entries (crc, entry) VALUES (?, ?)", rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise JournalError(
                f"The journal in {self.folder} cannot be written: {error}.",
                "See to the disk and start again: all that was answered is there.",
            ) from error
        self._entries += len(rows)

    def is_long(self, spaces: Spaces) -> bool:
        """Whether it is time for a snapshot."""
        return self._entries >= self.every and self._entries >= sum(len(space.store.jobs) for space in spaces)

    def snapshot(self, spaces: Spaces) -> None:
        """Write the whole state, and delete the entries that led to it."""
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
                f"No snapshot can be written in {self.folder}: {error}.", "See to the disk and start again."
            ) from error
        self._entries = 0

    def close(self) -> None:
        """Close it, and let others have the folder."""
        self._db.close()
        os.close(self._lock)

    # ---- reading

    def recover(self, spaces: Spaces, replay: Callable[[Entry], int]) -> int:
        """Put the state together again: the snapshot, then every entry, by `replay`, which gives the sequence after it.

        Gives the number of entries. Raises JournalError when anything is damaged, or comes out differently.
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
                raise ValueError(f"entry {number} stands where {self._entries} should")
            if zlib.crc32(text.encode()) != crc:
                raise ValueError(f"entry {number} does not match its checksum")
            yield json.loads(text)

    def _replay(self, entry: Entry, replay: Callable[[Entry], int]) -> None:
        seq = replay(entry)
        if entry[0] != "clear" and seq != entry[3]:
            written = self._db.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()[0]
            raise JournalError(
                f"Entry {self._entries} of the journal in {self.folder} now comes to event {seq}, not {entry[3]}: "
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
        """Refuse a file that is damaged, of something else, or of a newer version; fill one that is new."""
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if empty and not application:
            db.executescript(
                f"BEGIN; {_TABLES} INSERT INTO facts VALUES ('version', '{__version__}');"
                f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT;"
            )
        elif application != APPLICATION:
            raise JournalError(f"{self.folder / FILE} is no journal of qmodel.", "Choose another folder for --data.")
        elif version > FORMAT:
            raise JournalError(
                f"The journal in {self.folder} has format {version}, and qmodel {__version__} knows only {FORMAT}.",
                "Upgrade qmodel, or choose another folder for --data.",
            )
        elif (said := db.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
            raise self._damaged(said)

    def _damaged(self, why: str) -> JournalError:
        if "locked" in why:
            return JournalError(f"Another program reads the journal in {self.folder}.", "Close it, and start again.")
        return JournalError(
            f"The journal in {self.folder} is damaged: {why.rstrip('.')}.",
            "Restore the folder from a copy; or move it away to begin with an empty one.",
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

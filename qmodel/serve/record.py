"""The record: the calls of all clients, written as vectors. Tools of the kit read them, and the model replays them.

A vector is the history of one namespace from the time when it was empty: the calls of all connections in order of
execution, and their outcomes. The first line of the file tells the connection of each step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from qmodel.contract.operations import Operation
from qmodel.errors import LocalError

MOST: Final = 200_000
"""The maximum number of steps; the record ends there, and its description says so."""


class Recorded(NamedTuple):
    """One call."""

    connection: int
    now: int
    op: Operation


class Record:
    """Collects calls by namespace until they are written."""

    def __init__(self, path: str) -> None:
        """Raise LocalError if the file cannot be written: better now than after hours of calls."""
        self.path = Path(path)
        try:
            self.path.open("ab").close()
        except OSError as error:
            sentence = f"The record {path} cannot be written: {error.strerror}."
            raise LocalError(sentence, "Choose another file for --record.") from None
        self.histories: list[list[Recorded]] = []
        self._current: dict[tuple[int, str], list[Recorded]] = {}
        self.size = 0

    def add(self, db: int, prefix: str, connection: int, now: int, op: Operation) -> None:
        """Add a call that was executed or refused."""
        if self.size >= MOST:
            return
        self.size += 1
        history = self._current.get((db, prefix))
        if history is None:
            history = self._current[db, prefix] = []
            self.histories.append(history)
        history.append(Recorded(connection, now, op))

    def cleared(self, db: int | None = None, prefix: str = "") -> None:
        """Start new histories for namespaces that were emptied."""
        for key in list(self._current):
            if db in (None, key[0]) and key[1].startswith(prefix):
                del self._current[key]

    def write(self) -> int:
        """Write the file; give its number of vectors."""
        from qmodel.conformance.kit import vectors
        from qmodel.conformance.subjects.base import Step

        why = "Recorded by qmodel serve." if self.size < MOST else f"Recorded by qmodel serve, the first {MOST} steps."
        made = [
            vectors.made(f"served-{number}", "full", why, [Step(one.now, one.op) for one in history])
            for number, history in enumerate(self.histories, 1)
        ]
        connections = {
            vector.id: [one.connection for one in history] for vector, history in zip(made, self.histories, strict=True)
        }
        self.path.write_text(vectors.dumps(made, "full", connections=connections), encoding="utf-8")
        return len(made)

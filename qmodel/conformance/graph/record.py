"""A record of searches: a file with a JSON line for each. A night that was stopped goes on where it was.

A line holds a digest of the code that was searched: the model, the library, and the family; and what the model was
compared with. A search with the same digest and no finding, compared with as much, is not repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from qmodel.backends import bundle
from qmodel.conformance.graph.findings import Explored
from qmodel.conformance.graph.plan import Run
from qmodel.errors import LocalError

_KEPT = ("family", "closed", "states", "edges", "refused", "outside", "pairs", "stuck", "cpu")


def line(one: Explored) -> dict[str, Any]:
    """Give the figures of a search as JSON."""
    return {
        **{name: getattr(one, name) for name in _KEPT},
        "scope": str(one.scope),
        "findings": [str(finding) for finding in one.findings],
        "apart": dict(sorted(one.apart.items())),
    }


@cache
def _code() -> str:
    """Digest the model and the library."""
    root = Path(__file__).parents[2]
    files = sorted(path for folder in ("model", "contract") for path in (root / folder).rglob("*.py"))
    texts = [bundle.library(), *(path.read_text(encoding="utf-8") for path in files)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def digest(run: Run) -> str:
    """Digest what a search depends on: the model, the library, and the family with its scope and limits."""
    family = run.family._replace(letters=())
    letters = sorted(letter.text for letter in run.family.letters)
    live = sorted(family.live)
    said = repr((_code(), family._replace(live=frozenset()), letters, live, run.scope, run.edges))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


class Lines:
    """A file with a JSON object on each line, or none: then nothing is read, and nothing kept.

    Each object `needs` some fields.
    """

    def __init__(self, path: str | None, *needs: str) -> None:
        self._path = Path(path) if path else None
        self._needs = frozenset(needs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the objects; a file that is not there has none."""
        if self._path is not None and self._path.exists():
            for number, text in enumerate(self._path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                yield self._object(number, text)

    def _object(self, number: int, text: str) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not found.keys() >= self._needs:
            said = "If it is the last line, its writer was stopped: delete it. Otherwise name another file."
            raise LocalError(f"Line {number} of {self._path} is no line of such a record.", said)
        return found

    def append(self, line: dict[str, Any]) -> None:
        """Append an object."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


class Record:
    """A file of searches, or none. What these compare the model with is `compared`: the library, and then a server."""

    def __init__(self, path: str | None, *compared: str) -> None:
        self._lines = Lines(path, "code", "findings")
        self._compared = compared
        self._done = {
            one["code"]
            for one in self._lines
            if not one["findings"] and tuple(one.get("compared", ())[: len(compared)]) == compared
        }

    def has(self, run: Run) -> bool:
        """Tell whether a search of the same code stands there, compared with as much, without findings."""
        return digest(run) in self._done

    def add(self, run: Run, one: Explored) -> None:
        """Append a search."""
        self._lines.append({"code": digest(run), "compared": self._compared, **line(one)})

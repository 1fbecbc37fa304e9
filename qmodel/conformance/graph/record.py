"""A record of searches: a file with a JSON line for each. A night that was stopped goes on where it was.

A line holds a digest of the code that was searched: the model, the library, and the family. A search
with the same digest and no finding is not repeated.
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
    """A file with a JSON object on each line, or none: then nothing is read, and nothing kept."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path else None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the objects; a file that is not there has none."""
        if self._path is not None and self._path.exists():
            yield from map(json.loads, self._path.read_text(encoding="utf-8").splitlines())

    def append(self, line: dict[str, Any]) -> None:
        """Append an object."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


class Record:
    """A file of searches, or none."""

    def __init__(self, path: str | None) -> None:
        self._lines = Lines(path)
        self._done = {one["code"] for one in self._lines if not one["findings"]}

    def has(self, run: Run) -> bool:
        """Tell whether a search of the same code stands there, without findings."""
        return digest(run) in self._done

    def add(self, run: Run, one: Explored) -> None:
        """Append a search."""
        self._lines.append({"code": digest(run), **line(one)})

"""Keeps histories of the closed graph's shapes below `build/`: finding them takes minutes, reading them seconds.

They are kept family by family, under a digest of the code that a search imports and of the family itself. After a
change of the code nothing that was kept is read again; after a change of one family, only that family is searched.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from qmodel.conformance.code_digest import digest_of
from qmodel.conformance.graph import record
from qmodel.conformance.graph.plan import Run
from qmodel.conformance.histories import json_lines
from qmodel.conformance.histories.script import Named

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "shapes"
CODE: Final = (
    "qmodel/*.py",
    "qmodel/contract/**/*.py",
    "qmodel/model/**/*.py",
    "qmodel/wire/**/*.py",
    "qmodel/present/**/*.py",
    "qmodel/conformance/*.py",
    "qmodel/conformance/compare/*.py",
    "qmodel/conformance/graph/*.py",
    "qmodel/conformance/graph/*.lua",
    "qmodel/conformance/histories/*.py",
    "qmodel/conformance/subjects/*.py",
    "backends/**/*.py",
    "backends/**/*.lua",
    "lua/**/*.lua",
    "tools/mutation/suite.py",
)
"""All that a search imports, but for the laws: no search checks them."""


def histories(runs: Sequence[Run], make: Callable[[], list[Named]], folder: Path = FOLDER) -> list[Named]:
    """Read the histories of these searches of one family, or make them and keep them for the next time."""
    path = folder / f"{runs[0].family.name}.{_digest(runs)}.jsonl"
    if path.exists():
        return _loads(path.read_text(encoding="utf-8"))
    made = make()
    text = "".join(json.dumps([name, *map(json_lines.dump, steps)]) + "\n" for name, steps in made)
    if _loads(text) == made:  # JSON has no arguments that only the model refuses
        _write(path, text)
    return made


def _digest(runs: Sequence[Run]) -> str:
    parts = [_code(), *map(record.digest, runs)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def _code() -> str:
    return digest_of(ROOT, CODE)


def _loads(text: str) -> list[Named]:
    lines = map(json.loads, text.splitlines())
    return [Named(name, [json_lines.load(step) for step in steps]) for name, *steps in lines]


def _write(path: Path, text: str) -> None:
    """Write a file as a whole, in place of older ones of the family."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{path.name.split('.')[0]}.*.jsonl"):
        old.unlink(missing_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)

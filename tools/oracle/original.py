"""Reads the original script, and mends the one line because of which it does not load on a current server."""

from __future__ import annotations

import re
from pathlib import Path

PARTS = {
    False: ("base", "config", "job", "queue", "recurring", "worker", "api"),
    True: ("util", "base", "config", "job", "queue", "queue-patterns", "recurring", "worker", "throttle", "api"),
}
"""The files of which the original script consists, in the order of its Makefile; True is reqless."""


def script_of(path: Path) -> str:
    """Read the original from its folder of sources, or from the one script that was made of them."""
    if not path.is_dir():
        return loadable(path.read_text(encoding="utf-8"))
    parts = PARTS[of_reqless(path)]
    return loadable("\n".join((path / f"{part}.lua").read_text(encoding="utf-8") for part in parts))


def of_reqless(path: Path) -> bool:
    """Whether sources are those of reqless."""
    return (path / "throttle.lua").exists()


def loadable(script: str) -> str:
    """Make `table.extend` local: the library tables of a current server are read-only."""
    return re.sub(r"\btable\.extend\(", "table_extend(", script.replace("function table.extend(", LOCAL, 1))


LOCAL = "local function table_extend("

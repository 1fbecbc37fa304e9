"""The users of the server and their passwords. Every user may do everything; a name tells them apart in the log."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path

from qmodel.errors import LocalError


def read(password: str, pairs: Iterable[str], file: str) -> dict[str, bytes]:
    """Collect the digests of passwords by user: of `--password` (the user `default`), `--user` and the users file.

    The file has a line `name:password` for each user; empty lines and lines with # at the beginning are skipped.
    """
    lines = [*pairs, *_lines(file)]
    found = {"default": _digest(password)} if password else {}
    for line in lines:
        name, colon, secret = line.partition(":")
        if not (name and colon and secret):
            raise LocalError("A user is given in a form that cannot be read.", "Write name:password, neither empty.")
        found[name] = _digest(secret)
    return found


def fits(users: Mapping[str, bytes], name: str, password: str) -> bool:
    """Compare a password in constant time, also for a name that no user has."""
    return hmac.compare_digest(users.get(name, b"\0" * 32), _digest(password))


def _lines(file: str) -> list[str]:
    if not file:
        return []
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LocalError(f"The users file {file} cannot be read: {error}.", "Give another --users-file.") from None
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode("utf-8", "surrogateescape")).digest()

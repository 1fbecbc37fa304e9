"""Confirming: an operation is answered when replicas have it (WAIT), or when it is on the master's disk (WAITAOF).

The commands go out in one round trip: the operation, a mark, and the wait. The mark is a write that changes nothing.
WAIT waits for the last write of its own connection, and an operation that is sent again writes nothing: without the
mark, a resend on a new connection would be confirmed at once, though no replica has the operation.

This module does no input and output; confirmed.py sends what stands here.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from qmodel.contract.operations import CATALOGUE
from qmodel.errors import ConnectError

WRITES: Final = frozenset(spec.cls for spec in CATALOGUE.values() if not spec.reads)
"""The operations that are confirmed; what changes nothing has nothing to confirm."""

PART: Final = 0.8
"""How much of the timeout of a reply the server may wait."""


class Confirm(NamedTuple):
    """What must have an operation before it counts: so many replicas, or the master's own disk."""

    replicas: int = 0
    local: bool = False

    def command(self, seconds: float) -> tuple[str, ...]:
        """Write the command that waits so long."""
        ms = str(max(int(seconds * 1000), 1))  # 0 would wait for ever
        return ("WAITAOF", "1", "0", ms) if self.local else ("WAIT", str(self.replicas), ms)

    def is_met(self, reply: Any) -> bool:
        """Whether a reply says that enough have it. An error says that nobody has."""
        if isinstance(reply, Exception):
            return False
        return bool(reply[0] >= 1) if self.local else bool(reply >= self.replicas)

    def said(self, reply: Any) -> str:
        """Say what a reply lacks."""
        if isinstance(reply, Exception):
            return f"the server answered: {reply}"
        if self.local:
            return "the server has not written it to its disk"
        return f"{reply} of {self.replicas} replicas have it"

    def __str__(self) -> str:
        return "local" if self.local else str(self.replicas)


def confirm_of(text: str) -> Confirm:
    """Read a confirmation as a URL spells it. Raises ValueError."""
    if text == "local":
        return Confirm(local=True)
    if not re.fullmatch("[1-9]", text):
        raise ValueError(text)
    return Confirm(replicas=int(text))


def check_confirm(confirm: Confirm | None, facts: dict[str, str], where: str) -> None:
    """Refuse a confirmation that the server cannot give, by what it says in INFO."""
    if confirm is None:
        return
    if facts.get("server_name") == "qmodel":
        raise ConnectError(
            f"{where} is qmodel serve, which has no replicas and no WAITAOF.",
            "Leave confirm out of the URL; with --data FOLDER it replies when the disk has what it says.",
        )
    if not confirm.local:
        return
    found = re.match(r"(\d+)\.(\d+)", facts.get("redis_version", ""))
    version = (int(found[1]), int(found[2])) if found else (8, 0)
    if version < (7, 2):
        raise ConnectError(
            f"{where} is Redis {facts['redis_version']}, which has no WAITAOF; confirm=local needs it.",
            "Upgrade to Valkey, or to Redis 7.2 or later; or set appendfsync always, which needs no confirmation.",
        )
    if facts.get("aof_enabled") == "0":
        raise ConnectError(
            f"{where} has appendonly no, so nothing is confirmed by its disk.", "Set it: CONFIG SET appendonly yes."
        )
    if facts.get("appendfsync") == "everysec" and (version < (8, 0) or facts.get("server_name") == "valkey"):
        # Repaired in Redis 8.0 (https://github.com/redis/redis/pull/13793). Valkey 9.1.2 has it still.
        raise ConnectError(
            f"{where} has appendfsync everysec, with which this version answers WAITAOF before its disk has anything.",
            "Set it: CONFIG SET appendfsync always. Or use Redis 8.",
        )


def asked(replicas: int, local: bool) -> Confirm:
    """Read the arguments of `Client.confirmed`. Raises ConnectError unless they ask for one of the two."""
    if local == bool(replicas) or not 0 <= replicas <= 9:
        raise ConnectError("confirmed() takes replicas, from 1 to 9, or local=True.", "Give one of the two.")
    return Confirm(replicas, local)

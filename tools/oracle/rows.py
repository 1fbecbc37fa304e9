"""What the page of the dialect lists as a difference: how to turn what the original says into what ours must say."""

from __future__ import annotations

import json
from typing import Any

from tools.oracle.compare import Heard

Words = tuple[str, ...]


class Rows:
    """Follows a history of the original, and mends its defects that ours does not copy."""

    def __init__(self) -> None:
        self._gone: dict[str, str] = {}  # jobs that were given back: the worker that the original still names

    def mended(self, words: Words, heard: Heard) -> Heard:
        """Give what ours must say to a call."""
        name, given = words[0], words[2:]
        released = dict(self._gone)
        if heard.error is None:
            if name in ("put", "requeue") or name == "retry":
                self._gone.pop(given[2] if name != "retry" else given[0], None)
            if name == "retry":
                self._gone[given[0]] = given[2]
            if name in ("timeout", "cancel"):
                for jid in given:
                    self._gone[jid] = ""
        if name in ("put", "requeue", "cancel"):
            heard = heard._replace(published=_without_innocents(heard.published, released))
        return heard


def _without_innocents(published: tuple[tuple[str, str], ...], released: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Leave out what tells a worker of a job that it had given back, or that was taken from it before."""
    kept: list[tuple[str, str]] = []
    for channel, text in published:
        facts: Any = json.loads(text) if text.startswith("{") else {}
        if facts.get("jid") in released:
            if facts.get("event") == "lock_lost" or channel.startswith("w:"):
                continue
            if facts.get("event") == "canceled" and facts["worker"]:
                text = json.dumps(facts | {"worker": ""})
        kept.append((channel, text))
    return tuple(kept)

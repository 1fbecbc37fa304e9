"""What the streams of events share: the filter, the texts of messages, the pace and the pauses."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from qmodel.contract.events import Event
from qmodel.contract.operations import CATALOGUE
from qmodel.http.api import Api
from qmodel.http.problems import Problem

AFTER, EPOCH = CATALOGUE["events"].arguments[0].kind, CATALOGUE["events"].arguments[2].kind

RETRY_MS = 1000
"""The milliseconds that a client waits before it reconnects."""


class Wanted(NamedTuple):
    """A filter of events: by kinds, queues and jobs; an empty one takes all."""

    kinds: frozenset[str]
    queues: frozenset[str]
    jids: frozenset[str]

    def has(self, event: Event) -> bool:
        """Say whether the filter takes an event."""
        if self.kinds and event.event not in self.kinds:
            return False
        facts = event.named
        return (not self.queues or facts.get("queue") in self.queues) and (
            not self.jids or facts.get("jid") in self.jids
        )


class Paced:
    """A reader's pace: `_since` is when it last sent or checked something."""

    _since: float

    def is_quiet(self, seconds: float) -> bool:
        """Say whether it is time for a keep-alive."""
        return self.patience(seconds) <= 0

    def doubt(self) -> None:
        """Check at once whether the server has lost events, because it could not be reached."""
        self._since = -math.inf

    def patience(self, seconds: float) -> float:
        """Give the seconds until the next keep-alive."""
        return self._since + seconds - time.monotonic()


async def sleep(api: Api, sleep: Coroutine[Any, Any, None]) -> None:
    """Sleep, or until the server stops."""
    sleeping = asyncio.ensure_future(sleep)
    closing = asyncio.ensure_future(api.closing.wait())
    try:
        await asyncio.wait((sleeping, closing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeping.cancel()
        closing.cancel()
        await asyncio.gather(sleeping, closing, return_exceptions=True)


def is_place(seq: int, epoch: int | None) -> bool:
    """Say whether there may be an event with a sequence number, and with an epoch if one is given."""
    return AFTER.accepts(seq) and (epoch is None or EPOCH.accepts(epoch))


def not_an_id(text: str) -> Problem:
    """Make the refusal of a text that is not the id of a message."""
    return Problem(
        "BAD_JSON",
        f"{text[:100]!r} is not the id of an event.",
        "Give the id of the last event that was seen, or 0 for all that are kept.",
        {"argument": "after"},
    )


def trimmed(after: int, first: int, **more: int) -> str:
    """Make the message that events are no longer kept."""
    facts = {"after": after, "first": first, "missed": first - after - 1, **more}
    return f"event: trimmed\ndata: {line(facts)}\n\n"


def line(value: Any) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

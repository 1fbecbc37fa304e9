"""Events as they come, by server-sent events: each once, in order, and whoever comes back goes on where he was.

The sequence of an event is the id of its message, so a browser's EventSource, or any client that keeps `Last-Event-ID`,
misses nothing. Sequences have no gaps; where the stream begins later than was asked for, because older events are no
longer kept, a message `trimmed` says what is missing before it goes on.

Where the server that has the jobs has lost events, because it came back without its last seconds, or was emptied, its
sequence is behind what was read: a message `restarted` says so, and all that there is follows.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.events import EVENTS, Event
from qmodel.contract.operations import CATALOGUE
from qmodel.errors import ConnectError
from qmodel.http.api import Api, Call
from qmodel.http.problems import Problem, meant
from qmodel.wire.plain import plain

AFTER = CATALOGUE["events"].arguments[0].kind
RETRY_MS = 1000
"""How long a client is to wait before it comes back."""


class Wanted(NamedTuple):
    """Which events somebody wants: of these kinds, queues and jobs; all where none is named."""

    kinds: frozenset[str]
    queues: frozenset[str]
    jids: frozenset[str]

    def has(self, event: Event) -> bool:
        """Whether an event is one of them."""
        if self.kinds and event.event not in self.kinds:
            return False
        facts = event.named
        return (not self.queues or facts.get("queue") in self.queues) and (
            not self.jids or facts.get("jid") in self.jids
        )


async def follow(call: Call) -> Response:
    """Follow the events."""
    query = call.request.query_params
    wanted = Wanted(*(frozenset(query.getlist(name)) for name in ("event", "queue", "jid")))
    for kind in wanted.kinds - EVENTS.keys():
        raise Problem("BAD_JSON", f"There is no event {kind!r}.", meant(kind, EVENTS), {"argument": "event"})
    after = _after(call.request.headers.get("last-event-id") or query.get("after"))
    newest = await call.client.newest()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if call.request.method == "HEAD":
        return Response(None, 200, headers, media_type="text/event-stream")
    call.api.check_room(call.who)
    return _Following(call, headers, _messages(call.api, newest if after is None else after, newest, wanted))


class _Following(StreamingResponse):
    """The response that goes on."""

    def __init__(self, call: Call, headers: dict[str, str], messages: AsyncIterator[str]) -> None:
        super().__init__(messages, 200, headers, media_type="text/event-stream")
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._call.api.counted(self._call.who):
            await super().__call__(scope, receive, send)


def _after(text: str | None) -> int | None:
    """After which event to begin; None: after the newest."""
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    if not AFTER.accepts(number):
        raise Problem(
            "BAD_JSON",
            f"{text[:100]!r} is no sequence number.",
            "Give the id of the last event that was seen, or 0 for all that are kept.",
            {"argument": "after"},
        )
    return number


async def _messages(api: Api, after: int, newest: int, wanted: Wanted) -> AsyncIterator[str]:
    """The messages for the events after a sequence number, and a comment now and then that keeps the line open."""
    yield f"retry: {RETRY_MS}\nid: {after}\n\n"
    place = Place(after)
    if after > newest:
        yield place.alive(newest)
    while not api.closing.is_set():
        try:
            async with asyncio.timeout(api.limits.answer_seconds):
                page = await api.client.execute(ops.Events(place.after, MOST))
                quiet = not page and place.is_quiet(api.limits.alive_seconds)
                newest = await api.client.newest() if quiet else newest
        except (ConnectError, TimeoutError):
            yield ": the jobs cannot be reached\n\n"
            place.doubt()
            await _sleep(api, asyncio.sleep(RETRY_MS / 1000))
            continue
        if quiet:
            yield place.alive(newest)
        if text := place.read(page, wanted):
            yield text
        if len(page) < MOST:
            await _sleep(api, api.feed.sleep(place.after, place.patience(api.limits.alive_seconds)))


class Place:
    """How far somebody has read, and what he has been told of it."""

    def __init__(self, after: int) -> None:
        self.after = self._told = after
        self._since = time.monotonic()

    def read(self, page: Sequence[Event], wanted: Wanted) -> str:
        """Go on behind a page of events; give the messages for those that are wanted."""
        if not page:
            return ""
        gap = _trimmed(self.after, page[0].seq) if page[0].seq > self.after + 1 else ""
        text = gap + "".join(_message(event) for event in page if wanted.has(event))
        self.after = page[-1].seq
        if text:
            self._told, self._since = self.after, time.monotonic()
        return text

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing has been told for so long."""
        return self.patience(seconds) <= 0

    def doubt(self) -> None:
        """Look at once whether the server has lost events: it was away."""
        self._since = -math.inf

    def patience(self, seconds: float) -> float:
        """How long until nothing has been told for so long."""
        return self._since + seconds - time.monotonic()

    def alive(self, newest: int) -> str:
        """A message that keeps the line open, and tells how far all was read; go back where the server lost events."""
        self._since = time.monotonic()
        if newest < self.after:
            text = f"id: 0\nevent: restarted\ndata: {_line({'after': self.after, 'newest': newest})}\n\n"
            self.after = self._told = 0
            return text
        text = ": alive\n\n" if self._told == self.after else f"id: {self.after}\n\n"
        self._told = self.after
        return text


async def _sleep(api: Api, sleep: Coroutine[Any, Any, None]) -> None:
    """Sleep, unless or until the server stops."""
    sleeping = asyncio.ensure_future(sleep)
    closing = asyncio.ensure_future(api.closing.wait())
    try:
        await asyncio.wait((sleeping, closing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeping.cancel()
        closing.cancel()
        await asyncio.gather(sleeping, closing, return_exceptions=True)


def _message(event: Event) -> str:
    return f"id: {event.seq}\nevent: {event.event}\ndata: {_line(plain(event))}\n\n"


def _trimmed(after: int, first: int) -> str:
    facts = {"after": after, "first": first, "missed": first - after - 1}
    return f"event: trimmed\ndata: {_line(facts)}\n\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

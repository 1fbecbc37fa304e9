"""A stream of events, as server-sent events: each once, in order; a client that reconnects continues where it was.

The id of a message is the sequence number of its event and its epoch, `<sequence>-<epoch>`. So a browser's EventSource,
or any client that keeps `Last-Event-ID`, misses nothing. Sequence numbers have no gaps. If older events are no longer
kept, so that the stream begins later than requested, a message `trimmed` names the missing ones first.

If the server of the jobs has lost events that the reader has seen (a failover, a restored backup, a server that was
emptied), a message `forked` says so: the events after its `common` are taken back, and the server's own events after it
follow. There may be several, each with an earlier `common`. If the sequence of the server is behind the reader's in the
same epoch, as that of a replica may be, the message is `restarted`, and all events that there are follow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from qmodel.client.spans import Spans
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.events import EVENTS, Event
from qmodel.errors import ConnectError, Forked
from qmodel.http.api import Api, Call
from qmodel.http.event_texts import RETRY_MS, Paced, Wanted, is_place, line, not_an_id, sleep, trimmed
from qmodel.http.problems import Problem, meant
from qmodel.http.shard_events import places_after, shard_messages
from qmodel.wire.plain import plain


async def follow(call: Call) -> Response:
    """Stream the events."""
    query = call.request.query_params
    wanted = Wanted(*(frozenset(query.getlist(name)) for name in ("event", "queue", "jid")))
    for kind in wanted.kinds - EVENTS.keys():
        raise Problem("BAD_JSON", f"There is no event {kind!r}.", meant(kind, EVENTS), {"argument": "event"})
    text = call.request.headers.get("last-event-id") or query.get("after")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if call.client.shards:
        messages = shard_messages(call.api, await places_after(call.client, text), wanted)
    else:
        after, epoch = _after(text)
        newest = await call.client.position()
        place = Place(newest.seq, newest.epoch) if after is None else Place(after, epoch)
        messages = _messages(call.api, place, newest.seq, wanted)
    if call.request.method == "HEAD":
        return Response(None, 200, headers, media_type="text/event-stream")
    call.api.check_room(call.who)
    return _Following(call, headers, messages)


class _Following(StreamingResponse):
    """Make the streaming response."""

    def __init__(self, call: Call, headers: dict[str, str], messages: AsyncIterator[str]) -> None:
        super().__init__(messages, 200, headers, media_type="text/event-stream")
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._call.api.counted(self._call.who):
            await super().__call__(scope, receive, send)


def _after(text: str | None) -> tuple[int | None, int | None]:
    """Give the sequence number after which to begin (None: after the newest event), and its epoch, if it is given."""
    if text is None:
        return None, None
    one, dash, other = text.partition("-")
    number, epoch = _whole(one), _whole(other) if dash else None
    if not is_place(number, epoch):
        raise not_an_id(text)
    return number, epoch


def _whole(text: str) -> int:
    """Read a whole number; -1 for another text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1


async def _messages(api: Api, place: Place, newest: int, wanted: Wanted) -> AsyncIterator[str]:
    """Give the messages of the events after a position, and keep-alive comments."""
    yield f"retry: {RETRY_MS}\nid: {place.id}\n\n"
    behind = place.after > newest
    while not api.closing.is_set():
        try:
            async with asyncio.timeout(api.limits.answer_seconds):
                page = await api.client.execute(ops.Events(place.after, MOST, place.epoch))
                quiet = not page and (behind or place.is_quiet(api.limits.alive_seconds))
                newest = await api.client.newest() if quiet else newest
        except Forked as fork:
            yield place.take_back(fork)
            continue
        except (ConnectError, TimeoutError):
            yield ": the jobs cannot be reached\n\n"
            place.doubt()
            await sleep(api, asyncio.sleep(RETRY_MS / 1000))
            continue
        behind = False
        if quiet:
            yield place.alive(newest)
        if text := place.read(page, wanted):
            yield text
        elif page and place.is_quiet(api.limits.alive_seconds):  # there are events, and the filter takes none
            yield place.alive(place.after)
        if len(page) < MOST:
            await sleep(api, api.feed.sleep(place.after, place.patience(api.limits.alive_seconds)))


class Place(Paced):
    """The position of a reader: the last event read, with its epoch, and the last one sent."""

    def __init__(self, after: int, epoch: int | None) -> None:
        self._read = Spans(after, epoch)
        self._told = after
        self._since = time.monotonic()

    @property
    def after(self) -> int:
        """The sequence number of the last event read."""
        return self._read.after

    @property
    def epoch(self) -> int | None:
        """Its epoch, if it is known."""
        return self._read.epoch

    @property
    def id(self) -> str:
        """The id of the last event read."""
        return f"{self.after}" if self.epoch is None else f"{self.after}-{self.epoch}"

    def read(self, page: Sequence[Event], wanted: Wanted) -> str:
        """Advance past a page of events; give the messages of the events that the filter takes."""
        if not page:
            return ""
        gap = trimmed(self.after, page[0].seq) if page[0].seq > self.after + 1 else ""
        text = gap + "".join(_message(event) for event in page if wanted.has(event))
        for event in page:
            self._read.add(event)
        if text:
            self._told, self._since = self.after, time.monotonic()
        return text

    def alive(self, newest: int) -> str:
        """Make a keep-alive with the last sequence number read; go back if the server has lost events."""
        self._since = time.monotonic()
        if newest < self.after:
            text = f"id: 0\nevent: restarted\ndata: {line({'after': self.after, 'newest': newest})}\n\n"
            self._read, self._told = Spans(0, None), 0
            return text
        text = ": alive\n\n" if self._told == self.after else f"id: {self.id}\n\n"
        self._told = self.after
        return text

    def take_back(self, fork: Forked) -> str:
        """Go back to the newest common event; give the message that says so."""
        facts = {name: int(getattr(fork, name)) for name in ("after", "epoch", "current", "common")}
        self._read.take_back(facts["common"])
        self._told, self._since = self.after, time.monotonic()
        return f"id: {self.id}\nevent: forked\ndata: {line(facts)}\n\n"


def _message(event: Event) -> str:
    return f"id: {event.seq}-{event.epoch}\nevent: {event.event}\ndata: {line(plain(event))}\n\n"

"""The stream of a deployment's events: those of all shards, by moment; each once, and those of a shard in their order.

The id of a message is a cursor, the place of the last event of each shard (`qmodel.client.cursor`). So a client that
reconnects with it misses nothing. The messages `trimmed`, `forked` and `restarted` are about one shard, and name it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from qmodel.client.aio import AsyncClient
from qmodel.client.cursor import Cursor, merged
from qmodel.client.spans import Spans
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, Forked, RefusedError, error_of
from qmodel.http.api import Api
from qmodel.http.event_texts import RETRY_MS, Paced, Wanted, is_place, line, not_an_id, sleep, trimmed
from qmodel.wire.plain import plain


async def places_after(client: AsyncClient, text: str | None) -> Places:
    """Give the places at which a stream begins: after a cursor, at the first events (0), or after the newest (None)."""
    if text is None:
        return Places(await client.cursor())
    try:
        cursor = Cursor() if text == "0" else Cursor.read(text)
        cursor.begin(len(client.shards))
    except ValueError:
        raise not_an_id(text) from None
    if not all(is_place(place.seq, place.epoch) for place in cursor.places):
        raise not_an_id(text)
    return Places(cursor)


async def shard_messages(api: Api, places: Places, wanted: Wanted) -> AsyncIterator[str]:
    """Give the messages of the events after some places, and keep-alive comments."""
    yield f"retry: {RETRY_MS}\nid: {places.id}\n\n"
    while not api.closing.is_set():
        try:
            async with asyncio.timeout(api.limits.answer_seconds):
                pages = await api.client.pages_of_events(places.cursor)
                quiet = not any(pages) and places.is_quiet(api.limits.alive_seconds)
                newest = await api.client.cursor() if quiet else None
        except (ConnectError, TimeoutError):
            yield ": the jobs cannot be reached\n\n"
            places.doubt()
            await sleep(api, asyncio.sleep(RETRY_MS / 1000))
            continue
        if newest is not None:
            yield places.alive(newest)
        if text := places.read(pages, wanted):
            yield text
        elif any(pages) and places.is_quiet(api.limits.alive_seconds):  # there are events, and the filter takes none
            yield places.alive(places.cursor)
        if not any(type(page) is Refusal or len(page) == MOST for page in pages):
            await sleep(api, api.feed.sleep(places.count, places.patience(api.limits.alive_seconds)))


class Places(Paced):
    """The position of a reader: the last event read in each shard."""

    def __init__(self, cursor: Cursor) -> None:
        self._read = [Spans(place.seq, place.epoch) for place in cursor.places]
        self._since = time.monotonic()

    @property
    def cursor(self) -> Cursor:
        """The places."""
        return Cursor((one.after, one.epoch) for one in self._read)

    @property
    def id(self) -> str:
        """The id of the last message."""
        return str(self.cursor)

    @property
    def count(self) -> int:
        """The number of events up to here, in all shards."""
        return sum(one.after for one in self._read)

    def read(self, pages: list[Any], wanted: Wanted) -> str:
        """Advance past pages of events; give the messages that the filter takes, and those about lost events."""
        text = ""
        for shard, page in enumerate(pages):
            if type(page) is Refusal:
                text += self._take_back(shard, error_of(page))
            elif page and page[0].seq > self._read[shard].after + 1:
                text += trimmed(self._read[shard].after, page[0].seq, shard=shard)
        for shard, event in merged(() if type(page) is Refusal else page for page in pages):
            self._read[shard].add(event)
            text += self._message(shard, event) if wanted.has(event) else ""
        if text:
            self._since = time.monotonic()
        return text

    def _message(self, shard: int, event: Event) -> str:
        data = {**plain(event), "shard": shard}
        return f"id: {self.id}\nevent: {event.event}\ndata: {line(data)}\n\n"

    def _take_back(self, shard: int, fork: RefusedError) -> str:
        """Go back to the newest common event of a shard; give the message that says so. Raises any other refusal."""
        if not isinstance(fork, Forked):
            raise fork
        facts = {name: int(getattr(fork, name)) for name in ("after", "epoch", "current", "common")}
        self._read[shard].take_back(facts["common"])
        return f"id: {self.id}\nevent: forked\ndata: {line({**facts, 'shard': shard})}\n\n"

    def alive(self, newest: Cursor) -> str:
        """Make a keep-alive with the last places; go back in shards that are behind the reader in the same epoch."""
        self._since = time.monotonic()
        text = ""
        for shard, (one, now) in enumerate(zip(self._read, newest.places, strict=True)):
            if now.seq < one.after:
                facts = {"after": one.after, "newest": now.seq, "shard": shard}
                self._read[shard] = Spans(0, None)
                text += f"id: {self.id}\nevent: restarted\ndata: {line(facts)}\n\n"
        return text or f"id: {self.id}\n\n"

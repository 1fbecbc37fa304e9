"""The part of the asynchronous client that executes operations and reads events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from qmodel import runtime
from qmodel.backends import AsyncBackend, open_async_backend
from qmodel.client.cursor import Cursor, Place, cursor_of, merged, number_of
from qmodel.client.homes import Homes, homes_of
from qmodel.client.request_ids import with_request
from qmodel.client.worker_name import default_worker
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.errors import OverBudget, error_of
from qmodel.model.deployment.plans import Call


class AsyncExecutor:
    """An open backend, and the name under which its user takes jobs."""

    def __init__(self, backend: str | AsyncBackend = "memory://", *, worker: str | None = None) -> None:
        self.backend = open_async_backend(backend) if isinstance(backend, str) else backend
        self._worker = worker
        self.homes: Homes | None = homes_of(self.backend)
        """Where jobs with made-up ids belong, if the backend is a deployment."""

    @property
    def shards(self) -> Sequence[AsyncBackend]:
        """The shards of a deployment, each as a backend of one namespace; none if this is a namespace."""
        found: Sequence[AsyncBackend] = getattr(self.backend, "shards", ())
        return found

    def _at_home(self, name: str) -> AsyncExecutor:
        """Give a client of the shard in which a name is at home; this one if there are no shards."""
        if self.homes is None or not self.shards:
            return self
        return AsyncExecutor(self.shards[self.homes.home(name)], worker=self._worker)

    @property
    def worker(self) -> str:
        """The worker name of this client in this thread."""
        return self._worker or default_worker()

    async def execute(self, op: ops.Operation, *, now: int | None = None) -> Any:
        """Execute any operation of the catalogue; give its reply (`qmodel.contract.replies`), or raise its refusal.

        An operation that takes a request id and has none gets a fresh one, so that the engine recognises a resend after
        a lost reply. `now` is the time in milliseconds; by default the backend's clock gives it.
        """
        reply = await self.backend.execute(with_request(op), now)
        if type(reply) is Refusal:
            raise error_of(reply)
        return reply

    async def multiget(self, jids: Sequence[str]) -> list[replies.Job]:
        """Read jobs in the given order; missing ones are left out. What is too much for one step is read in parts."""
        found: list[replies.Job] = []
        at, most = 0, MOST
        while some := tuple(jids[at : at + most]):
            try:
                found += await self.execute(ops.Multiget(some))
                at += len(some)
            except OverBudget as over:
                most = int(over.parts)
        return found

    async def results_of(self, jid: str) -> list[replies.Result]:
        """Read the outcomes of all named dependencies of a job. What is too much for one step is read in parts."""
        found: list[replies.Result] = []
        most = MOST
        while True:
            try:
                page = await self.execute(ops.Results(jid, len(found), most))
                found += page
                if len(page) < most:
                    return found
            except OverBudget as over:
                most = int(over.parts)

    async def execute_many(self, operations: Iterable[ops.Operation]) -> list[Any]:
        """Execute operations in order, with a server in one round trip.

        Each operation is a step of its own: a refused one does not stop the others, and the list holds its RefusedError
        at its position.
        """
        sent = await self.backend.execute_many([with_request(op) for op in operations])
        return [error_of(reply) if type(reply) is Refusal else reply for reply in sent]

    async def events(self, after: int | Cursor = 0, *, epoch: int | None = None) -> AsyncIterator[Event]:
        """Iterate over the events after a sequence number, oldest first, up to the newest.

        Sequence numbers have no gaps: a jump means that older events are no longer kept (option max-events). To go on
        later, pass the sequence number and the epoch of the last event seen. Raises Forked if that event is not part
        of the server's history any more, because the server lost the end of its log.

        In a deployment each shard numbers its events: pass a Cursor, which moves with each event, and keep its text.
        Events come in the order of their moments, as far as the clocks of the nodes agree.
        """
        if self.shards:
            async for event in self._events_of_shards(cursor_of(after)):
                yield event
            return
        seq = number_of(after)
        while page := await self.execute(ops.Events(seq, MOST, epoch)):
            for event in page:
                seq, epoch = event.seq, event.epoch
                yield event
            if len(page) < MOST:
                return

    async def latest(self, count: int) -> list[Event]:
        """Read the newest `count` events, oldest first; in a deployment those of all shards, by their moments."""
        if self.shards:
            places = (await self.cursor()).places
            before: int | Cursor = Cursor((max(place.seq - count, 0), None) for place in places)
        else:
            before = max(await self.newest() - count, 0)
        found: list[Event] = []
        async for event in self.events(before):
            found.append(event)
            if len(found) == count * max(len(self.shards), 1):
                break
        return found[-count:]

    async def pages_of_events(self, cursor: Cursor) -> list[Any]:
        """Read a page of the events of each shard, from a place on. A shard gives the refusal `FORKED` in its place."""
        calls = [Call(at, ops.Events(place.seq, MOST, place.epoch)) for at, place in enumerate(cursor.places)]
        return await self._replies_of(calls)

    async def _events_of_shards(self, cursor: Cursor) -> AsyncIterator[Event]:
        cursor.begin(len(self.shards))
        more = True
        while more:
            pages = _accepted(await self.pages_of_events(cursor))
            more = any(len(page) == MOST for page in pages)
            for shard, event in merged(pages):
                cursor.move(shard, event)
                yield event

    async def _journal_of_shards(self, cursor: Cursor, page: int) -> AsyncIterator[replies.Recorded]:
        cursor.begin(len(self.shards))
        more = True
        while more:
            calls = [Call(at, ops.Journal(place.seq, page, place.epoch)) for at, place in enumerate(cursor.places)]
            pages = await self._execute_calls(calls)
            more = any(pages)
            for shard, found in enumerate(pages):
                for entry in found:
                    cursor.places[shard] = Place(entry.number, entry.epoch)
                    yield entry

    async def _messages_of_shards(self, cursor: Cursor, count: int) -> list[replies.Message]:
        cursor.begin(len(self.shards))
        calls = [Call(at, ops.Messages(place.seq, count)) for at, place in enumerate(cursor.places)]
        found = merged(await self._execute_calls(calls))[:count]
        for shard, message in found:
            cursor.places[shard] = Place(message.seq)
        return [message for _, message in found]

    async def _execute_calls(self, calls: list[Call]) -> list[Any]:
        """Execute operations in given shards; raise the first refusal."""
        return _accepted(await self._replies_of(calls))

    async def _replies_of(self, calls: list[Call]) -> list[Any]:
        backend: Any = getattr(self.backend, "backend", self.backend)  # reads need no confirmation
        found: list[Any] = await backend.execute_calls(calls)
        return found

    async def cursor(self) -> Cursor:
        """Give the place of the newest event of each shard. `follow` from there gives only later events."""
        return Cursor(await self._execute_calls([Call(shard, ops.Newest()) for shard in range(len(self.shards))]))

    async def newest(self) -> int:
        """Give the sequence number of the newest event. `follow` from there gives only later events.

        In a deployment this is the number of all events: see `cursor`.
        """
        return (await self.position()).seq

    async def position(self) -> replies.Newest:
        """Give the sequence number and the epoch of the newest event. `follow` from there notices a fork."""
        found: replies.Newest = await self.execute(ops.Newest())
        return found

    async def _now(self) -> int:
        """Give the time in milliseconds by the backend's clock if it has one, else by this machine's."""
        clock = getattr(self.backend, "now", None)
        return await clock() if clock else runtime.time_ns() // 1_000_000

    async def _now_at(self, queue: str) -> int:
        """Give the time by the server of a queue: its minute, if this machine's clock is not in it."""
        now = await self._now()
        minute: int = (await self.execute(ops.Metrics(queue, None, 1)))[0].at
        return now if minute <= now < minute + 60_000 else minute

    async def close(self) -> None:
        """Close the connection."""
        await self.backend.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {type(self.backend).__name__}>"


def _accepted(replies: list[Any]) -> list[Any]:
    """Give replies; raise the first refusal."""
    for reply in replies:
        if type(reply) is Refusal:
            raise error_of(reply)
    return replies

"""The two Lua corners of the triangle: the library in this process, and on a real server.

Both show the whole state by reading every raw key (`raw_keys`), so nothing that an operation leaves behind is missed.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from qmodel.backends import bundle
from qmodel.backends.redis import raw_keys
from qmodel.conformance.subjects.base import Crash, History, ModelSubject, Seen, Step, observe
from qmodel.contract.events import Event
from qmodel.contract.operations import Events, Newest, Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, restore
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store
from qmodel.wire import codec

PREFIX = "ql:"
PAGE = 1000
PATIENCE = 120.0
"""Seconds that a server has for what was sent: a busy machine may run it late, and a history is one round trip."""


def _unencodable(now: Any, op: Operation) -> Refusal:
    """Give the model's refusal of a call that the wire format cannot express: a client refuses to send it."""
    refused = engine.step(Store(), now, op)
    assert isinstance(refused, Refusal), op
    return refused


class LuaSubject:
    """The Lua library in this process. `texts` replaces some of its files (mutants)."""

    name = "lua"
    pipelines = False

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        from qmodel.backends.embedded.host import LuaHost

        self.host = LuaHost(lambda: 0.0)
        self.host.load(bundle.library(texts))

    def reset(self) -> None:
        """Start again with an empty keyspace."""
        self.host.fresh()

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation."""
        try:
            args = codec.encode(op, now)
        except codec.Unencodable:
            return _unencodable(now, op)
        name = bundle.function_name(op.spec.name)
        return codec.decode(op, self.host.fcall(name, (PREFIX,), args))

    def steps(self, steps: Sequence[Step]) -> list[Any]:
        """Execute operations that write in one call."""
        words = [
            word
            for now, op in steps
            for args in [codec.encode(op, now)]
            for word in (op.spec.name, str(len(args)), *args)
        ]
        found = self.host.fcall(bundle.CALLS, (PREFIX,), words)
        return [codec.decode(step.op, reply) for step, reply in zip(steps, found, strict=True)]

    def run(self, history: History, every: int = 1) -> list[Seen]:
        """Execute a history step by step."""
        return observe(self, history, every)

    def snapshot(self) -> Snapshot:
        """Read the whole state from the raw keys."""
        return raw_keys.decode(self.host.keyspace.dump(), PREFIX)

    def events_after(self, seq: int) -> tuple[Event, ...]:
        """Read the events kept after a sequence number."""
        return _events_after(self, seq)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _events_after(subject: Any, seq: int) -> tuple[Event, ...]:
    found: list[Event] = []
    while True:
        page = subject.step(0, Events(seq, PAGE))
        found += page
        if len(page) < PAGE:
            return tuple(found)
        seq = page[-1].seq


_DELETE = """
local pattern = string.gsub(KEYS[1], '[%*%?%[%]\\\\]', '\\\\%0') .. '*'
for _, key in ipairs(redis.call('KEYS', pattern)) do redis.call('DEL', key) end
return 1
"""


class ServerSubject:
    """The Lua library on a server: whole histories in one round trip.

    It works under a prefix of its own, below that of the URL, and leaves nothing behind.
    """

    pipelines = True

    def __init__(self, url: str) -> None:
        import redis

        from qmodel.backends.redis import dump
        from qmodel.backends.redis.backend import RedisBackend
        from qmodel.backends.redis.setup import script_digest
        from qmodel.backends.redis.url import options_of

        options = options_of(url)
        self.name = options.where
        self._prefix = f"{options.prefix}conformance-{secrets.token_hex(4)}:"
        self._backend = RedisBackend(options)  # loads the library
        self._script = None if self._backend._dialect.functions else script_digest()
        self._backend.execute(Newest())  # finds the master of the prefix, in a cluster
        master = {name: value for name, value in self._backend.at.items() if name in ("host", "port")}
        patient = {**options.connection, **master, "socket_timeout": PATIENCE}
        self._client: Any = redis.Redis(connection_pool=redis.ConnectionPool(**patient))
        self._dump = dump.dump_command(self._prefix)
        self._delete: tuple[str, ...] = ("EVAL", _DELETE, "1", self._prefix)
        self._dump_of = dump.dump_of

    def _words(self, op: Operation, now: int) -> tuple[str, ...]:
        name = op.spec.name
        head = ("FCALL", bundle.function_name(name), "1", self._prefix)
        if self._script is not None:
            head = ("EVALSHA", self._script, "1", self._prefix, name)  # type: ignore[assignment]
        return (*head, *codec.encode(op, now))

    def reset(self) -> None:
        """Start again with no keys."""
        self._client.execute_command(*self._delete)

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation."""
        try:
            words = self._words(op, now)
        except codec.Unencodable:
            return _unencodable(now, op)
        return codec.decode(op, self._client.execute_command(*words))

    def snapshot(self) -> Snapshot:
        """Read the whole state from the raw keys."""
        return self._read(self._client.execute_command(*self._dump))

    def _read(self, raw: Any) -> Snapshot:
        return raw_keys.decode(self._dump_of(raw), self._prefix)

    def events_after(self, seq: int) -> tuple[Event, ...]:
        """Read the events kept after a sequence number."""
        return _events_after(self, seq)

    def run(self, history: History, every: int = 1) -> list[Seen]:
        """Execute a whole history in one round trip.

        After each step it reads the events that are new on the model. If the subject emitted others, its answer differs
        from the model's.
        """
        model, seqs = ModelSubject(), [0]
        for step in history:
            model.step(*step)
            seqs.append(model.store.seq)
        pages = [range(before, after + 1, PAGE) for before, after in pairwise(seqs)]
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command(*self._delete)
            sent = []
            for number, (now, op) in enumerate(history, 1):
                try:
                    pipeline.execute_command(*self._words(op, now))
                    sent.append(True)
                except codec.Unencodable:
                    sent.append(False)
                for seq in pages[number - 1]:
                    pipeline.execute_command(*self._words(Events(seq, PAGE), 0))
                if number % every == 0 or number == len(history):
                    pipeline.execute_command(*self._dump)
            replies = iter(pipeline.execute(raise_on_error=False)[1:])
        return list(self._seen(history, sent, pages, replies, every))

    def _seen(
        self, history: History, sent: list[bool], pages: list[range], replies: Iterator[Any], every: int
    ) -> Iterator[Seen]:
        for number, (now, op) in enumerate(history, 1):
            try:
                outcome = codec.decode(op, _checked(next(replies))) if sent[number - 1] else _unencodable(now, op)
                told = [codec.decode(Events(), _checked(next(replies))) for _ in pages[number - 1]]
                events = tuple(sorted({event for page in told for event in page}))
                looked = number % every == 0 or number == len(history)
                yield Seen(outcome, events, self._read(_checked(next(replies))) if looked else None)
            except Exception as error:
                yield Seen(Crash(repr(error)), (), None)
                return

    def close(self) -> None:
        """Delete the namespace, and disconnect."""
        self.reset()
        self._client.close()
        self._backend.close()


class ServedSubject(ServerSubject):
    """`qmodel serve`, which has no keys to read and a command that shows its state."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._dump = ("DEBUG", "QMODEL", "SNAPSHOT", self._prefix)
        self._delete = ("DEBUG", "QMODEL", "RESET", self._prefix)

    def _read(self, raw: Any) -> Snapshot:
        return restore.loads(raw)


def server_subject(url: str) -> ServerSubject:
    """Open the subject for a server: one that runs the library, or `qmodel serve`."""
    import redis

    from qmodel.backends.redis.url import options_of

    name = ""
    client = redis.Redis(connection_pool=redis.ConnectionPool(**options_of(url).connection))
    # Who may not ask, asks no server of ours; whether there is a server, the subject finds out.
    with client, contextlib.suppress(redis.RedisError):
        name = client.info("server").get("server_name", "")
    return ServedSubject(url) if name == "qmodel" else ServerSubject(url)


def _checked(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply

"""Subjects of a dialect: the model, the Lua in this process, and the Lua on a server as function and as script.

A history mixes the dialect's calls with the engine's own operations, as clients of both may share a namespace.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from qmodel.backends import bundle
from qmodel.backends.redis import raw_keys
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.dialects import qless
from qmodel.dialects.qless.session import Engine
from qmodel.model import engine, snapshot
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store
from qmodel.wire import codec

PREFIX = "ql:"


class Call(NamedTuple):
    """One call of a dialect: its arguments, the command first, and the document that spells it so, if one is named."""

    arguments: tuple[str, ...]
    document: str = ""


Calls = Sequence[Call | Step]


class Heard(NamedTuple):
    """The result of one step: the reply or error sentence, the published messages, and the state."""

    outcome: Any
    published: tuple[tuple[str, str], ...]
    snapshot: Snapshot


class Subject(Protocol):
    """Executes a history on an empty namespace."""

    name: str
    has_documents: bool
    """Whether it takes calls as the documents spell them: some carry no time, so its clock must stand still."""

    def run(self, history: Calls) -> list[Heard]:
        """Execute a whole history."""

    def close(self) -> None:
        """Release the subject's resources."""


class ModelSubject:
    """The model."""

    name = "model"
    has_documents = True

    def run(self, history: Calls) -> list[Heard]:
        """Execute a whole history."""
        store = Store()
        return [self.step(store, one) for one in history]

    def step(self, store: Store, one: Call | Step) -> Heard:
        """Execute one step."""
        outcome, published = perform(store, one)
        return Heard(outcome, tuple(published), snapshot.of(store))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def perform(store: Store, one: Call | Step, step: Engine = engine.step) -> tuple[Any, list[tuple[str, str]]]:
    """Execute a step on the model; give its outcome and messages. `step` executes the operations."""
    if isinstance(one, Step):
        return _plain(step(store, *one)), []
    try:
        if one.document:
            return qless.call_document(store, one.document, one.arguments[0], one.arguments[1:], 0, step)
        return qless.call(store, one.arguments, step)
    except qless.QlessError as refused:
        return f"ERR {refused.sentence}", []


def operations(history: Calls) -> list[Step]:
    """Give the operations that the calls of a history execute, one after the other: the laws hold for them too."""
    store, found = Store(), list[Step]()

    def step(store: Store, now: int, op: Operation) -> Any:
        found.append(Step(now, op))
        return engine.step(store, now, op)

    for one in history:
        perform(store, one, step)
    return found


def _plain(reply: Any) -> Any:
    """Reduce a reply of the engine to whether it was refused: the engine has a suite of its own."""
    return reply.code if isinstance(reply, Refusal) else "OK"


def _texts(raw: Any) -> Any:
    if isinstance(raw, bytes):
        return raw.decode()
    return [_texts(one) for one in raw] if isinstance(raw, list) else raw


class LuaSubject:
    """The Lua library in this process; `texts` replaces some of its files."""

    name = "lua"
    has_documents = True

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        from qmodel.backends.embedded.host import LuaHost

        self._host = LuaHost(lambda: 0.0)
        self._host.load(bundle.library(texts))

    def run(self, history: Calls) -> list[Heard]:
        """Execute a whole history."""
        self._host.fresh()
        return [self._step(one) for one in history]

    def _step(self, one: Call | Step) -> Heard:
        from qmodel.backends.embedded.host import ReplyError

        published: list[tuple[str, str]] = []
        keyspace = self._host.keyspace
        keyspace.subscriber = lambda channel, text: published.append((channel.decode()[len(PREFIX) :], text.decode()))
        try:
            outcome = self._outcome(one)
        except ReplyError as error:
            outcome = str(error)
        return Heard(outcome, tuple(published), raw_keys.decode(keyspace.dump(), PREFIX))

    def _outcome(self, one: Call | Step) -> Any:
        if isinstance(one, Call):
            name, words = f"{bundle.LIBRARY}_qless", one.arguments
            if one.document:
                name, words = f"{name}_document", (one.document, *words)
            return _texts(self._host.fcall(name, (PREFIX, bundle.SIMULATED), words))
        name = bundle.function_name(one.op.spec.name)
        return _texts(codec.listed(one.op, self._host.fcall(name, (PREFIX,), codec.encode(one.op, one.now)))[0])

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ServerSubject:
    """The Lua library on a server, under a prefix of its own: by the function or, with `script`, by the script."""

    has_documents = False

    def __init__(self, url: str, script: bool = False) -> None:
        import redis

        from qmodel.backends.redis import dump
        from qmodel.backends.redis.backend import RedisBackend
        from qmodel.backends.redis.url import options_of

        options = options_of(url)
        self.name = f"{options.where}, {'script' if script else 'function'}"
        self._prefix = f"{options.prefix}dialect-{secrets.token_hex(4)}:"
        self._backend = RedisBackend(options)  # loads the library
        self._client: Any = redis.Redis(
            connection_pool=redis.ConnectionPool(**{**options.connection, "socket_timeout": 60})
        )
        self._listener: Any = redis.client.PubSub(self._client.connection_pool)
        self._listener.psubscribe(f"{self._prefix}*")
        self._listener.get_message(timeout=5)
        self._script = self._client.script_load(bundle.qless_script(self._prefix, simulated=True)) if script else None
        self._dump = dump.dump_command(self._prefix)
        self._dump_of = dump.dump_of

    def run(self, history: Calls) -> list[Heard]:
        """Execute a whole history in one round trip; a marker message ends the messages of each step."""
        self._empty()
        with self._client.pipeline(transaction=False) as pipeline:
            for number, one in enumerate(history):
                pipeline.execute_command(*self._words(one))
                pipeline.execute_command("PUBLISH", f"{self._prefix}end", str(number))
                pipeline.execute_command(*self._dump)
            raw = pipeline.execute(raise_on_error=False)
        return [
            Heard(
                self._outcome(one, raw[3 * number]),
                self._messages(str(number)),
                raw_keys.decode(self._dump_of(raw[3 * number + 2]), self._prefix),
            )
            for number, one in enumerate(history)
        ]

    def _words(self, one: Call | Step) -> tuple[str, ...]:
        if isinstance(one, Step):
            name = bundle.function_name(one.op.spec.name)
            return ("FCALL", name, "1", self._prefix, *codec.encode(one.op, one.now))
        if self._script is not None:
            return ("EVALSHA", self._script, "0", *one.arguments)
        return ("FCALL", f"{bundle.LIBRARY}_qless", "2", self._prefix, bundle.SIMULATED, *one.arguments)

    def _outcome(self, one: Call | Step, raw: Any) -> Any:
        if isinstance(raw, Exception):
            return "ERR " + str(raw).removeprefix("ERR ").removeprefix("user_script:1: ")
        return _texts(raw) if isinstance(one, Call) else _texts(codec.listed(one.op, raw)[0])

    def _messages(self, end: str) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        while True:
            message = self._listener.get_message(ignore_subscribe_messages=True, timeout=10)
            assert message is not None, "the server lost a message"
            channel, text = message["channel"].decode()[len(self._prefix) :], message["data"].decode()
            if (channel, text) == ("end", end):
                return tuple(found)
            found.append((channel, text))

    def _empty(self) -> None:
        for key in self._client.scan_iter(match=f"{self._prefix}*", count=1000):
            self._client.delete(key)

    def close(self) -> None:
        """Delete the namespace, and disconnect."""
        self._empty()
        self._listener.close()
        self._client.close()
        self._backend.close()


def open_subject(url: str, script: bool = False) -> Subject:
    """Open the subject of a backend's URL."""
    if url.startswith("memory://"):
        return ModelSubject()
    return LuaSubject() if url.startswith("embedded://") else ServerSubject(url, script)

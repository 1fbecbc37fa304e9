"""The two sides: the original script, and ours as script, as function, on `qmodel serve`, or in this process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from qmodel.backends import bundle
from qmodel.dialects import qless
from qmodel.model.state.store import Store
from qmodel.testing.servers import Candidate, Server, running
from tools.oracle.compare import Heard

Words = tuple[str, ...]
PREFIX = "ql:"
END = "oracle:end"


class Side(Protocol):
    """Executes calls, one after the other, on a namespace of its own."""

    def begin(self) -> None:
        """Start with an empty namespace."""

    def call(self, words: Words) -> Heard:
        """Execute one call."""

    def close(self) -> None:
        """Release everything."""


def redis_server() -> AbstractContextManager[Server]:
    """Start redis-server without a file."""
    return running(Candidate("redis-server", program="redis-server"))


def client_of(server: Server, db: int) -> Any:
    """Connect to one database."""
    return server.client(db=db, decode_responses=True, protocol=2)


class ScriptSide:
    """A script, or a function, on one database of a server; a marker message ends the messages of a call."""

    def __init__(self, server: Server, db: int, head: Words) -> None:
        self.client = self._client = client_of(server, db)
        self._head = head
        self._listener: Any = self._client.pubsub(ignore_subscribe_messages=True)
        self._listener.psubscribe(f"{PREFIX}*", END)
        self._listener.get_message(timeout=5)
        self._listener.get_message(timeout=5)
        self._number = 0

    def begin(self) -> None:
        """Empty the database."""
        self._client.flushdb()
        self._until_now()

    def _until_now(self) -> tuple[tuple[str, str], ...]:
        """Read the messages up to a new marker."""
        self._number += 1
        end = f"{id(self)} {self._number}"
        self._client.publish(END, end)
        return self._messages(end)

    def _messages(self, end: str) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        while True:
            message = self._listener.get_message(timeout=10)
            if message is None:
                continue
            if message["channel"] == END:
                if message["data"] == end:
                    return tuple(found)
            else:
                found.append((message["channel"].removeprefix(PREFIX), message["data"]))

    def call(self, words: Words) -> Heard:
        """Execute one call."""
        self._number += 1
        end = f"{id(self)} {self._number}"
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.publish(END, f"before {end}")
            pipeline.execute_command(*self._head, *words)
            pipeline.publish(END, end)
            _, reply, _ = pipeline.execute(raise_on_error=False)
        self._messages(f"before {end}")
        published = self._messages(end)
        if isinstance(reply, Exception):
            return Heard(None, str(reply), published)
        return Heard(reply, None, published)

    def close(self) -> None:
        """Disconnect."""
        self._listener.close()
        self._client.close()


class MemorySide:
    """The dialect in this process, on the model."""

    def __init__(self) -> None:
        self.store = Store()

    def begin(self) -> None:
        """Start with an empty store."""
        self.store = Store()

    def call(self, words: Words) -> Heard:
        """Execute one call."""
        try:
            reply, published = qless.call(self.store, words)
        except qless.QlessError as refused:
            return Heard(None, refused.sentence, ())
        return Heard(reply, None, tuple(published))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def script_side(server: Server, db: int, script: str) -> ScriptSide:
    """Load a script; its calls go to one database."""
    client = client_of(server, db)
    digest = client.script_load(script)
    client.close()
    return ScriptSide(server, db, ("EVALSHA", digest, "0"))


def function_side(server: Server, db: int) -> ScriptSide:
    """Load our functions; calls of the dialect's function go to one database."""
    client = client_of(server, db)
    client.function_load(bundle.library(), replace=True)
    client.close()
    return ScriptSide(server, db, ("FCALL", f"{bundle.LIBRARY}_qless", "2", PREFIX, bundle.SIMULATED))

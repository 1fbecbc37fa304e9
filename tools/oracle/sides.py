"""The two sides: the original script, and ours as script, as function, on `qmodel serve`, or in this process."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import redis

from qmodel.backends import bundle
from qmodel.dialects import qless
from qmodel.model.state.store import Store
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


class Server:
    """A server that runs until it is closed, on a free port of this machine."""

    def __init__(self, command: Sequence[str], port: int, folder: str) -> None:
        self.port = port
        self._process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = self.client()
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                if self._process.poll() is not None:
                    raise
        client.close()

    def client(self, db: int = 0) -> Any:
        """Connect to one database."""
        return redis.Redis(port=self.port, db=db, decode_responses=True, protocol=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()


def free_port() -> int:
    """Find a port that is not in use."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def redis_server() -> Server:
    """Start redis-server without a file."""
    port = free_port()
    words = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
    return Server(words, port, tempfile.mkdtemp())


def qmodel_serve() -> Server:
    """Start `qmodel serve` without a file."""
    port = free_port()
    return Server([sys.executable, "-m", "qmodel", "serve", "--port", str(port)], port, str(Path.cwd()))


class ScriptSide:
    """A script, or a function, on one database of a server; a marker message ends the messages of a call."""

    def __init__(self, server: Server, db: int, head: Words) -> None:
        self.client = self._client = server.client(db)
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
        self._store = Store()

    def begin(self) -> None:
        """Start with an empty store."""
        self._store = Store()

    def call(self, words: Words) -> Heard:
        """Execute one call."""
        try:
            reply, published = qless.call(self._store, words)
        except qless.QlessError as refused:
            return Heard(None, refused.sentence, ())
        return Heard(reply, None, tuple(published))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def script_side(server: Server, db: int, script: str) -> ScriptSide:
    """Load a script; its calls go to one database."""
    client = server.client(db)
    digest = client.script_load(script)
    client.close()
    return ScriptSide(server, db, ("EVALSHA", digest, "0"))


def function_side(server: Server, db: int) -> ScriptSide:
    """Load our functions; calls of the dialect's function go to one database."""
    client = server.client(db)
    client.function_load(bundle.library(), replace=True)
    client.close()
    return ScriptSide(server, db, ("FCALL", f"{bundle.LIBRARY}_qless", "2", PREFIX, bundle.SIMULATED))

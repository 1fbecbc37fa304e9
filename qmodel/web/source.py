"""Where the pages get what they show: a client, opened when it is first needed, and bounded ways to ask it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from qmodel import operations as ops
from qmodel import replies
from qmodel.backends import without_password
from qmodel.client import Client
from qmodel.errors import RefusedError


class BadInput(ValueError):
    """Something in a request that cannot be read; the text says what, and how it is written."""


PAGE = 50
"""The rows of a list."""


OWN = ("memory://", "embedded://")
"""Where each client has jobs of its own, unless it is made of another one."""


class Source:
    """The jobs of one namespace. Any number of threads may ask; what is asked together goes in one round trip."""

    def __init__(self, given: Any) -> None:
        self._url = given if isinstance(given, str) else None
        self._client = given if isinstance(given, Client) else None
        self._app = given if self._url is None and self._client is None and hasattr(type(given), "client") else None
        if self._url is None and self._client is None and self._app is None:
            raise TypeError(f"the pages need a qmodel.Client, an App or a URL, not {type(given).__name__}")
        if self._url is not None and self._url.startswith(OWN):
            self._client = Client(self._url)
        self._opening = threading.Lock()

    @property
    def shared(self) -> Any:
        """What another client of the same jobs is made of."""
        return self._app or self._client or self._url

    @property
    def client(self) -> Client:
        """The client. Raises ConnectError as long as the URL cannot be opened."""
        if self._app is not None:  # it knows when it needs another one
            found: Client = self._app.client
            return found
        with self._opening:
            if self._client is None:
                self._client = Client(self._url or "")
            return self._client

    @property
    def where(self) -> str:
        """What the pages say of where the jobs are: the URL without its secrets, or the kind of backend."""
        return hidden(self._url) if self._url is not None else type(self.client.backend).__name__

    def close(self) -> None:
        """Give back the connection, if it was opened here."""
        if self._url is not None and self._client is not None:
            self._client.close()

    def now(self) -> int:
        """The moment in milliseconds: by the backend's clock if it tells, else by ours."""
        clock = getattr(self.client.backend, "now", None)
        return int(clock()) if clock is not None else time.time_ns() // 1_000_000

    def ask(self, op: ops.Operation) -> Any:
        """Execute one operation; give its reply, or raise its refusal."""
        return self.client.execute(op)

    def ask_all(self, operations: Iterable[ops.Operation]) -> list[Any]:
        """Execute operations in one round trip; give their replies, or raise the first refusal."""
        wanted = list(operations)
        found = self.client.execute_many(wanted) if wanted else []
        for one in found:
            if isinstance(one, RefusedError):
                raise one
        return found

    def jobs(self, jids: Sequence[str]) -> list[replies.Job]:
        """Those of some jobs that are there."""
        return list(self.ask(ops.Multiget(tuple(jids)))) if jids else []

    def known(self, jids: Iterable[str]) -> dict[str, replies.Job]:
        """The same, by id."""
        return {job.jid: job for job in self.jobs(tuple(dict.fromkeys(jids))[:1000])}

    def queues(self, offset: int = 0, count: int = 1000) -> list[replies.QueueCounts]:
        """The queues, as they were first seen."""
        return list(self.ask(ops.Queues(offset, count)))


class Slice(NamedTuple):
    """A part of a list: what is in it, where it begins, how long the list is if known, and whether it goes on."""

    items: list[Any]
    offset: int
    total: int | None
    more: bool
    cursor: str = ""
    looked: int = 0
    """How many jobs a search has looked at, where it stopped before its end."""


def cut(found: Sequence[Any], offset: int, count: int = PAGE) -> Slice:
    """A part of a list of unknown length, of which one more was asked for."""
    return Slice(list(found[:count]), offset, None, len(found) > count)


def hidden(url: str) -> str:
    """A URL as it may be shown: without a password, and without what stands behind it, which may be one.

    >>> hidden("redis://user:secret@host:6379/0?password=x")
    'redis://user:***@host:6379/0'
    """
    return without_password(url.partition("?")[0])

"""Where the pages get what they show: a client, opened when it is first needed, and bounded ways to ask it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from qmodel.backends import without_password
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.errors import RefusedError

PAGE = 50
"""The rows of a list."""


ALL = 10_000
"""The queues, or failure groups, that are added up; there are seldom more than a few dozen."""

PATIENCE = 3.0
"""The seconds for which a page goes on to ask a server that does not answer."""

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
        self._impatient: tuple[Client, Client] | None = None
        self._opening = threading.Lock()

    @property
    def shared(self) -> Any:
        """What another client of the same jobs is made of."""
        return self._app or self._client or self._url

    @property
    def client(self) -> Client:
        """The client, which gives up after PATIENCE. Raises ConnectError as long as it cannot be opened."""
        with self._opening:
            if self._app is not None:
                given = self._app.client  # an App knows when it needs another one
            elif self._client is not None:
                given = self._client
            else:
                given = self._client = Client(self._url or "")
            if self._impatient is None or self._impatient[0] is not given:
                self._impatient = given, impatient(given)
            return self._impatient[1]

    @property
    def where(self) -> str:
        """What the pages say of where the jobs are: the URL without its secrets, or the kind of backend."""
        if self._client is not None and self._url is None:
            return type(self._client.backend).__name__
        return hidden(self._url or str(getattr(self._app, "url", "")))

    def close(self) -> None:
        """Give back the connections that were opened here."""
        given, own = self._impatient or (self._client, None)
        if own is not None and own is not given:
            own.close()
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

    def queues(self, offset: int = 0, count: int = PAGE) -> list[replies.QueueCounts]:
        """A part of the queues, as they were first seen."""
        return list(self.ask(ops.Queues(offset, count)))

    def all_queues(self) -> list[replies.QueueCounts]:
        """All queues, or the first ALL of them."""
        return self._all(ops.Queues)

    def all_groups(self) -> list[replies.Tally]:
        """All failure groups by name, or the first ALL of them."""
        return self._all(ops.FailedGroups)

    def _all(self, make: Callable[[int, int], ops.Operation]) -> list[Any]:
        found: list[Any] = []
        while len(found) < ALL:
            found += (part := self.ask(make(len(found), MOST)))
            if len(part) < MOST:
                break
        return found


def impatient(client: Client) -> Client:
    """A client of the same jobs that gives up soon, where that one would go on: a page is looked at by somebody who
    waits, and a few that wait for a server that is gone would be all that this one can serve.
    """
    options = getattr(client.backend, "options", None)
    if getattr(options, "deadline", 0) <= PATIENCE:
        return client
    made: Any = type(client.backend)
    return Client(made(replace(cast(Any, options), deadline=PATIENCE)))


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

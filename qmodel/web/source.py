"""The source of the pages: a client, opened at the first use, and bounded reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from qmodel.backends import with_option, without_password
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.redaction import replied, shown
from qmodel.errors import RefusedError

PAGE = 50
"""The rows of a list."""


ALL = 10_000
"""The most queues, or failure groups, that are summed up; there are seldom more than a few dozen."""

PATIENCE = 3.0
"""The seconds for which a page retries a server that does not answer."""

OWN = ("memory://", "embedded://")
"""The URLs that give each client its own jobs."""


class Source:
    """The jobs of one namespace, for any number of threads. Operations that are sent together need one round trip."""

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
        """Give the app, client or URL for another client of the same jobs."""
        return self._app or self._client or self._url

    @property
    def client(self) -> Client:
        """Give the client, which gives up after PATIENCE. Raises ConnectError while it cannot be opened."""
        with self._opening:
            if self._app is not None:
                given = self._app.client  # an App replaces its client if needed
            elif self._client is not None:
                given = self._client
            else:
                given = self._client = Client(with_option(self._url or "", "connect_deadline", PATIENCE))
            if self._impatient is None or self._impatient[0] is not given:
                self._impatient = given, impatient(given)
            return self._impatient[1]

    @property
    def where(self) -> str:
        """Describe the place of the jobs: the URL without its secrets, or the kind of backend."""
        if self._client is not None and self._url is None:
            return type(self._client.backend).__name__
        return hidden(self._url or str(getattr(self._app, "url", "")))

    def close(self) -> None:
        """Close the connections that were opened here."""
        given, own = self._impatient or (self._client, None)
        if own is not None and own is not given:
            own.close()
        if self._url is not None and self._client is not None:
            self._client.close()
            if not self._url.startswith(OWN):  # the app may be started again
                self._client = self._impatient = None

    def now(self) -> int:
        """Give the time in milliseconds, of the backend's clock if it has one, else of ours."""
        clock = getattr(self.client.backend, "now", None)
        return int(clock()) if clock is not None else time.time_ns() // 1_000_000

    def ask(self, op: ops.Operation) -> Any:
        """Execute one operation; give its reply, redacted, or raise its refusal."""
        return replied(op, self.client.execute(op))

    def try_all(self, operations: Iterable[ops.Operation]) -> list[Any]:
        """Execute operations in one round trip; give their replies, redacted, or their refusals."""
        asked = list(operations)
        return [replied(op, one) for op, one in zip(asked, self.client.execute_many(asked), strict=True)]

    def ask_all(self, operations: Iterable[ops.Operation]) -> list[Any]:
        """Execute operations in one round trip; give their replies, or raise the first refusal."""
        wanted = list(operations)
        found = self.try_all(wanted) if wanted else []
        for one in found:
            if isinstance(one, RefusedError):
                raise one
        return found

    def latest(self, count: int) -> list[Event]:
        """Read the latest events, oldest first; in a deployment those of all shards, by their moments."""
        return self.client.latest(count)

    def jobs(self, jids: Sequence[str]) -> list[replies.Job]:
        """Read jobs; missing ones are left out."""
        return list(shown(self.client.multiget(jids)))

    def known(self, jids: Iterable[str]) -> dict[str, replies.Job]:
        """Read jobs by id; missing ones are left out."""
        return {job.jid: job for job in self.jobs(tuple(dict.fromkeys(jids))[:1000])}

    def queues(self, offset: int = 0, count: int = PAGE) -> list[replies.QueueCounts]:
        """Read a page of the queues, in the order of their creation."""
        return list(self.ask(ops.Queues(offset, count)))

    def all_queues(self) -> list[replies.QueueCounts]:
        """Read all queues, or the first ALL of them."""
        return self._all(ops.Queues)

    def all_groups(self) -> list[replies.Tally]:
        """Read all failure groups by name, or the first ALL of them."""
        return self._all(ops.FailedGroups)

    def _all(self, make: Callable[[int, int], ops.Operation]) -> list[Any]:
        found: list[Any] = []
        while len(found) < ALL:
            found += (part := self.ask(make(len(found), MOST)))
            if len(part) < MOST:
                break
        return found


def impatient(client: Client) -> Client:
    """Make a client of the same jobs with a short deadline: a person waits for the page, and a few requests that wait
    for a lost server would use up all threads.
    """
    options = getattr(client.backend, "options", None)
    if getattr(options, "deadline", 0) <= PATIENCE:
        return client
    made: Any = type(client.backend)
    return Client(made(replace(cast(Any, options), deadline=PATIENCE)))


class Slice(NamedTuple):
    """A page of a list: its items, its offset, the length of the list if known, and whether more follow."""

    items: list[Any]
    offset: int
    total: int | None
    more: bool
    cursor: str = ""
    looked: int = 0
    """The number of jobs that an unfinished search has examined."""


def cut(found: Sequence[Any], offset: int, count: int = PAGE) -> Slice:
    """Make a page of a list of unknown length; one more item than the page was read."""
    return Slice(list(found[:count]), offset, None, len(found) > count)


def hidden(url: str) -> str:
    """Hide the secrets of a URL: its password, and its query, which may contain one.

    >>> hidden("redis://user:secret@host:6379/0?password=x")
    'redis://user:***@host:6379/0'
    """
    return without_password(url.partition("?")[0])

"""The line to the server, which may be away for as long as it likes.

What is sent is made once, with its request ids, and sent again until it is answered; that nothing happens twice by it
is the engine's law. That the server is away is said once, and that it is back again. An error that sending again does
not help is given in the place of a reply, so that one operation that a server refuses (it is full, say, and takes no
pop) keeps none of the others.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from qmodel.client.fields import with_request
from qmodel.client.sync import Client
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError

log = logging.getLogger("qmodel.worker")

DEADLINE: Final = 2.0
"""Seconds for which the backend tries by itself, before we say that the server is away."""

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 3.0

_SERVERS: Final = frozenset(("redis", "rediss", "unix", "valkey", "valkeys"))


class GivenUp(Exception):
    """The worker is to stop at once, and the server has not answered."""


def own_url(url: str) -> str | None:
    """The URL by which a worker connects for itself; None where it has to share the connection there is.

    >>> own_url("redis://localhost/0"), own_url("redis://localhost?deadline=9"), own_url("memory://")
    ('redis://localhost/0?deadline=2', 'redis://localhost?deadline=9', None)
    """
    parts = urlsplit(url)
    if parts.scheme not in _SERVERS:
        return None
    if "deadline" in parse_qs(parts.query):
        return url
    return f"{url}{'&' if parts.query else '?'}deadline={DEADLINE:g}"


def is_error(reply: object) -> bool:
    """Whether an operation was neither executed nor refused."""
    return isinstance(reply, ConnectError)


def passes(error: ConnectError) -> bool:
    """Whether the server may yet come: it is not there, or only just starting."""
    cause = error.__cause__
    if cause is None:
        return False
    try:
        from qmodel.backends.redis.resend import may_pass
    except ImportError:
        return False
    return may_pass(cause)


class Line:
    """Executes operations for a worker, for ever if need be; `hurry` ends that."""

    def __init__(self, url: str, shared: Callable[[], Client]) -> None:
        self.url = url
        self.hurry = threading.Event()
        self.meanwhile: Callable[[], None] = lambda: None
        self._own = own_url(url)
        self._shared = shared
        self._client: Client | None = None
        self._telling = threading.Lock()
        self._away_since = 0.0
        self._told = ""

    @property
    def client(self) -> Client:
        """The client, connected."""
        assert self._client is not None
        return self._client

    def connect(self) -> None:
        """Connect, or wait until there is a server. Raises ConnectError for what waiting does not mend."""
        pause = FIRST_PAUSE
        while self._client is None:
            try:
                self._client = Client(self._own) if self._own else self._shared()
            except ConnectError as error:
                if not passes(error):
                    raise
                self.away(error)
                pause = self._rest(pause)
        self.back()

    def execute_many(self, operations: Sequence[Operation]) -> list[Any]:
        """Execute operations in one round trip; give the reply of each, its RefusedError, or the ConnectError that
        sending it again would not help. Raises GivenUp in a hurry.
        """
        made = [with_request(op) for op in operations]
        pause = FIRST_PAUSE
        while True:
            try:
                found = self.client.execute_many(made)
            except ConnectError as error:
                if not _is_answer(error):
                    self.away(error)
                    pause = self._rest(pause)
                    continue
                if len(made) == 1:
                    self.told(error)
                    return [error]
                return [self.execute_many([op])[0] for op in made]
            self.back()
            return found

    def _rest(self, pause: float) -> float:
        """Sleep, with jitter so that many workers do not come back as one; give how long to sleep next time."""
        self.meanwhile()
        if self.hurry.wait(random.uniform(pause / 2, pause)):
            raise GivenUp
        return min(2 * pause, LONGEST_PAUSE)

    def away(self, error: ConnectError) -> None:
        """Say that the server is away, the first time."""
        with self._telling:
            if not self._away_since:
                self._away_since = time.monotonic()
                log.warning("%s I go on trying, for as long as it takes.", error.sentence)

    def told(self, error: ConnectError) -> None:
        """Say what a server answers that helps nobody, the first time."""
        with self._telling:
            if self._told != error.sentence:
                self._told = error.sentence
                log.error("%s %s I go on trying.", error.sentence, error.next_step)

    def back(self) -> None:
        """Say that the server is there again, if it was away."""
        if self._away_since:
            with self._telling:
                away, self._away_since = self._away_since, 0.0
            if away:
                log.warning("%s is there again, after %.1f s.", self.where, time.monotonic() - away)

    @property
    def where(self) -> str:
        """The server, as it may be shown."""
        parts = urlsplit(self.url)
        user, at, host = parts.netloc.rpartition("@")
        shown = f"{user.partition(':')[0]}@{host}" if at and ":" in user else parts.netloc
        return f"{parts.scheme}://{shown}{parts.path}"

    def close(self) -> None:
        """Give back the connection, if it is our own; who waits on it wakes."""
        if self._own and self._client is not None:
            self._client.close()


def _is_answer(error: ConnectError) -> bool:
    """Whether the server has answered, with an error that stays."""
    return bool(getattr(error, "code", ""))

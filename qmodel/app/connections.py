"""Where an app is connected to: one client per process, one asynchronous client per event loop, each at its first use.

After a fork the child makes clients of its own. Both sorts share one namespace, also on `memory://`, whose URL would
give each a new one. What only an event loop needs is imported when one asks: a process that puts a job and ends should
not wait for it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from qmodel.app.hooks import logger
from qmodel.client.sync import Client
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    import asyncio

    from qmodel.client.aio import AsyncClient

VARIABLE: Final = "QMODEL_URL"
_PRIVATE: Final = {"memory://": "memory", "embedded://": "embedded"}


class NoLoop(QmodelError, RuntimeError):
    """An asynchronous client was asked for where no event loop runs."""

    def __init__(self) -> None:
        super().__init__("app.aclient needs a running event loop. Use app.client here, or put instead of aput.")


class NotHere(QmodelError, RuntimeError):
    """A client that was lent for a while, in a process that was forked meanwhile."""

    def __init__(self) -> None:
        super().__init__(
            "The jobs are in the queue of a test, which is not in this forked process. Use threads for it."
        )


class Connection:
    """The clients of an app; or those that a test lends it, which are not closed here, and not left by mistake."""

    def __init__(self, url: str | None) -> None:
        self._given = url
        self._name = os.urandom(8).hex()
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._instead: AsyncClient | None = None
        self._lent = self._warned = False
        self._by_loop: dict[asyncio.AbstractEventLoop, AsyncClient] = {}
        _OPEN.add(self)

    @property
    def url(self) -> str:
        """The URL that was given, else QMODEL_URL, else `memory://`."""
        return self._given or os.environ.get(VARIABLE) or "memory://"

    @property
    def _shared(self) -> str:
        """The same, with a name where each connection would have a namespace of its own."""
        return self.url + self._name if self.url in _PRIVATE else self.url

    @property
    def client(self) -> Client:
        """The client of this process."""
        found = self._client
        if found is None:
            if self._lent:
                raise NotHere
            with self._lock:
                if self._client is None:
                    self._warn()
                    self._client = Client(self._shared)
                found = self._client
        return found

    @property
    def aclient(self) -> AsyncClient:
        """The client of the event loop that runs. Raises NoLoop where none does."""
        if self._instead is not None:
            return self._instead
        if self._lent:
            raise NotHere
        import asyncio

        from qmodel.client.aio import AsyncClient

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise NoLoop from None
        found = self._by_loop.get(loop)
        if found is None:
            with self._lock:
                # A client knows its loop, so the two would keep each other.
                self._warn()
                self._by_loop = {one: client for one, client in self._by_loop.items() if not one.is_closed()}
                found = self._by_loop[loop] = AsyncClient(self._shared)
        return found

    def told(self) -> None:
        """Note that somebody was told where the jobs are, and needs no warning."""
        self._warned = True

    def _warn(self) -> None:
        """Say once that nobody said where the jobs are: a server whose setting was forgotten would lose them all."""
        if self._given is None and not os.environ.get(VARIABLE) and not self._warned:
            self._warned = True
            logger().warning(
                "Nobody said where the jobs are, so they are in this process alone, and gone with it. "
                "Set QMODEL_URL (redis://localhost:6379/0), or write App('memory://') where that is meant."
            )

    @contextmanager
    def lent(self, client: Client | None, aclient: AsyncClient | None, url: str | None) -> Iterator[None]:
        """Use other clients for a while. Those of another URL are not closed here; and the app's own URL is not asked
        then by whoever has none of them.
        """
        before = self._client, self._instead, self._given, self._lent
        self._client, self._instead, self._lent = client, aclient, url is not None
        self._given = url or self._given
        try:
            yield
        finally:
            self._client, self._instead, self._given, self._lent = before

    def close(self) -> None:
        """Give back the connection of this process; it is opened again when it is needed."""
        if self._lent:
            return
        found, self._client = self._client, None
        if found is not None:
            found.close()

    async def aclose(self) -> None:
        """Give back the connections of the event loop that runs."""
        import asyncio

        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.close()

    def forget(self) -> None:
        """Leave the clients to somebody else."""
        self._lock = threading.Lock()
        self._client = self._instead = None
        self._by_loop = {}


_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork() -> None:
    """Leave the clients to the parent; a lock that was held there would be held here for ever."""
    for connection in list(_OPEN):
        connection.forget()


os.register_at_fork(after_in_child=_after_fork)

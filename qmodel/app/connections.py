"""The connections of an app: one client per process and one asynchronous client per event loop, each made at first use.

After a fork the child makes its own clients. Both kinds of client share one namespace, also on `memory://`, which would
otherwise give each client a new one. Modules for event loops are imported only when they are needed, because a process
that puts a job and ends should not wait for them.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from qmodel import runtime
from qmodel.app.hooks import logger
from qmodel.client.sync import Client
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    import asyncio

    from qmodel.client.aio import AsyncClient

VARIABLE: Final = "QMODEL_URL"
_PRIVATE: Final = {"memory://": "memory", "embedded://": "embedded"}


class NoLoop(QmodelError, RuntimeError):
    """An asynchronous client was requested without a running event loop."""

    def __init__(self) -> None:
        super().__init__("app.aclient needs a running event loop. Use app.client here, or put instead of aput.")


class NotHere(QmodelError, RuntimeError):
    """A lent client was requested in a process that was forked meanwhile."""

    def __init__(self) -> None:
        super().__init__(
            "The jobs are in the queue of a test, which a forked process cannot reach. Use threads in the test."
        )


class Connection:
    """The clients of an app. A test may lend it others; those are not closed here, and the app cannot leave them."""

    def __init__(self, url: str | None) -> None:
        self._given = url
        self._name = runtime.urandom(8).hex()
        self._lock = runtime.Lock()
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
    def is_unset(self) -> bool:
        """Whether no URL was given: then the jobs are in the memory of this process, and perhaps by mistake."""
        return self._given is None and not os.environ.get(VARIABLE)

    @property
    def _shared(self) -> str:
        """The URL, with a name added if each connection would otherwise have a namespace of its own."""
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
        """The client of the running event loop. Raises NoLoop if none runs."""
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
                # A client refers to its loop, so clients of closed loops are dropped here; the two would keep each
                # other alive.
                self._warn()
                self._by_loop = {one: client for one, client in self._by_loop.items() if not one.is_closed()}
                found = self._by_loop[loop] = AsyncClient(self._shared)
        return found

    def told(self) -> None:
        """Suppress the warning about a missing URL: the user knows where the jobs are."""
        self._warned = True

    def _warn(self) -> None:
        """Warn once if no URL is set: if a server's setting was forgotten, all jobs would be lost."""
        if self.is_unset and not self._warned:
            self._warned = True
            logger().warning(
                "No URL is set, so the jobs are in the memory of this process and are lost when it ends. "
                "Set QMODEL_URL (redis://localhost:6379/0), or write App('memory://') if this is intended."
            )

    @contextmanager
    def lent(self, client: Client | None, aclient: AsyncClient | None, url: str | None) -> Iterator[None]:
        """Use other clients within a block. With a `url` they are not closed here, and the app's own URL is not used as
        long as the block runs.
        """
        before = self._client, self._instead, self._given, self._lent
        self._client, self._instead, self._lent = client, aclient, url is not None
        self._given = url or self._given
        try:
            yield
        finally:
            self._client, self._instead, self._given, self._lent = before

    def close(self) -> None:
        """Close the connection of this process. It is opened again when it is needed."""
        if self._lent:
            return
        found, self._client = self._client, None
        if found is not None:
            found.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        import asyncio

        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.close()

    def forget(self) -> None:
        """Drop the clients without closing them."""
        self._lock = runtime.Lock()
        self._client = self._instead = None
        self._by_loop = {}


_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork() -> None:
    """Leave the clients to the parent process, and make new locks: a lock that was held there would never be
    released.
    """
    for connection in list(_OPEN):
        connection.forget()


os.register_at_fork(after_in_child=_after_fork)

"""A TCP proxy between clients and a server, for faults of the network.

All lines share one event loop in a thread. Methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")
SIZE = 1 << 16


class Network:
    """The event loop of all lines."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, made: Awaitable[T]) -> T:
        """Run a coroutine in the loop's thread; give its result."""

        async def awaited() -> T:
            return await made

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result(30)

    def __enter__(self) -> Network:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.run(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30)
        self.loop.close()

    async def _close(self) -> None:
        """Cancel all connections and listeners."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Line:
    """Carries bytes between clients and the server at a port; clients connect to `port`.

    `lose` replies are lost, each with its connection, after the server executed the request; with `torn`, the first
    half of the reply arrives. Each packet, in either direction, is late by `delay` seconds.
    """

    def __init__(self, network: Network, to: int = 0) -> None:
        self.to = to
        self.lose = 0
        self.torn = False
        self.delay = 0.0
        self._network = network
        self._open: set[asyncio.StreamWriter] = set()
        self._server = network.run(asyncio.start_server(self._carry, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> int:
        """Cut all connections; give their number."""

        async def aborted() -> int:
            found = list(self._open)
            for writer in found:
                writer.transport.abort()
            return len(found)

        return self._network.run(aborted())

    def close(self) -> None:
        """Stop listening, and cut all connections."""

        async def closed() -> None:
            self._server.close()

        self._network.run(closed())
        self.cut()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection until one of its ends closes it."""
        self._open.add(writer)
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            self._drop(writer)
            return
        both = {
            asyncio.create_task(self._pump(reader, server_writer, False)),
            asyncio.create_task(self._pump(server_reader, writer, True)),
        }
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            self._drop(writer)
            server_writer.transport.abort()

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, replies: bool) -> None:
        """Carry one direction."""
        with contextlib.suppress(OSError):
            while data := await reader.read(SIZE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if replies and self.lose:
                    self.lose -= 1
                    if self.torn:
                        writer.write(data[: len(data) // 2])
                        await writer.drain()
                        writer.close()
                    return
                writer.write(data)
                await writer.drain()

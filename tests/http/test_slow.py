"""A client that sends its headers slowly cannot hold a connection."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvicorn

from qmodel.http import host

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, Any]]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer after longer than the headers may take."""
    if scope["type"] == "http":
        await asyncio.sleep(0.6)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def talked(talk: Talk) -> Any:
    """Talk to a server in this process."""

    async def main() -> Any:
        server = uvicorn.Server(uvicorn.Config(app, http=host.HeaderTimeout, lifespan="off", log_level="warning"))
        with host.Address(port=0).bind() as bound:
            serving = asyncio.ensure_future(server.serve(sockets=[bound]))
            reader, writer = await asyncio.open_connection(*bound.getsockname()[:2])
            try:
                return await asyncio.wait_for(talk(reader, writer), 30)
            finally:
                writer.close()
                server.should_exit = True
                await serving

    return asyncio.run(main())


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
    """Send a byte now and then until the connection is closed; give the seconds until then, which are not too few."""
    began = time.monotonic()
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
    closed = asyncio.ensure_future(reader.read())
    while not closed.done():
        writer.write(b"x")
        await asyncio.wait([closed], timeout=0.05)
    with contextlib.suppress(ConnectionResetError):  # the last bytes came after the end
        assert b"200" not in closed.result()
    return time.monotonic() - began


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
    assert await reader.readexactly(2) == b"ok"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "HEADER_SECONDS", 0.4)


def test_slow_headers_are_cut_off() -> None:
    assert talked(drip) > 0.3


def test_slow_headers_of_a_second_request_are_cut_off() -> None:
    async def second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        await ask(reader, writer)
        return await drip(reader, writer)

    assert talked(second) > 0.3


def test_a_slow_answer_and_a_pause_between_requests_are_not() -> None:
    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await ask(reader, writer)
            await asyncio.sleep(0.6)

    talked(patient)


def test_both_servers_have_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(host._Server, "run", lambda self, sockets: seen.append(self.config.http))
    host.serve(app, host.Address(port=0), lambda url: None, host.Closing())
    assert seen == [host.HeaderTimeout]

"""Every client test runs on every backend, with the client and with the asynchronous one.

The asynchronous client is driven through `Blocking`, which awaits what it gives: so one test serves both.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any

import pytest

import qmodel
from qmodel.client.values import Listing
from tests.servers import NOTHING_FOUND, SERVE, Candidate, Server, chosen_servers, running, serving

OURS = ("qmodel.client.aio", "qmodel.client.aio_requests")
"""Whose objects are driven."""

MEMORY = Candidate("memory", url="memory://")


@pytest.fixture(
    scope="session",
    params=[MEMORY, SERVE, *(chosen_servers() or [None])],
    ids=lambda candidate: candidate.name if candidate else "none",
)
def place(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Where the jobs are: this process, `qmodel serve`, or a private server; see `tests/servers.py`."""
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    if candidate is MEMORY:
        yield Server("memory", "memory://")
        return
    if candidate is SERVE:
        with serving() as started:
            yield started
        return
    with running(candidate) as started:
        yield started


@pytest.fixture
def client_url(place: Server) -> str:
    """The URL of an empty namespace."""
    if place.name != "memory":
        with place.client() as connection:
            connection.flushdb()
    return place.url


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, client_url: str) -> Iterator[qmodel.Client]:
    """A client, or what behaves like one."""
    if request.param == "sync":
        with qmodel.Client(client_url) as made:
            yield made
        return
    with asyncio.Runner() as runner:
        blocking: Any = Blocking(runner, runner.run(opened(client_url)))
        yield blocking
        blocking.close()


async def opened(url: str) -> qmodel.AsyncClient:
    return qmodel.AsyncClient(url)


class Blocking:
    """An object of the asynchronous client, whose methods block."""

    def __init__(self, runner: asyncio.Runner, inner: Any) -> None:
        self._runner = runner
        self._inner = inner

    def _done(self, value: Any) -> Any:
        """What a call gave, awaited and wrapped."""
        if inspect.isawaitable(value):
            return self._done(self._runner.run(awaited(value)))
        if isinstance(value, AsyncIterator):
            return iter(self._done(self._runner.run(collected(value))))
        if isinstance(value, Listing):
            return Listing([self._done(one) for one in value], value.total)
        if isinstance(value, list):
            return [self._done(one) for one in value]
        if type(value).__name__ == "AsyncTrackedJobs":
            return value._replace(jobs=self._done(value.jobs))
        return self._wrapped(value)

    def _wrapped(self, value: Any) -> Any:
        ours = type(value).__module__ in OURS
        return Blocking(self._runner, value) if ours and not isinstance(value, tuple) else value

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value) or type(value).__module__ in OURS:
            return self._done(value)
        return lambda *args, **named: self._done(value(*map(bare, args), **bare(named)))

    def __getitem__(self, key: Any) -> Any:
        return self._done(self._inner[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self._done(self._inner.set(key, value))

    def __delitem__(self, key: str) -> None:
        self._done(self._inner.unset(key))

    def __iter__(self) -> Iterator[Any]:
        if hasattr(self._inner, "__aiter__"):
            return iter(self._done(self._inner.__aiter__()))
        return iter(self._done(self._inner.all()))

    def __eq__(self, other: object) -> bool:
        return bool(self._inner == bare(other))

    def __hash__(self) -> int:
        return hash(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner).replace("Async", "")

    def __enter__(self) -> Any:
        return self._done(self._inner.__aenter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Any:
        return self._done(self._inner.__aexit__(kind, error, trace))


async def awaited(value: Any) -> Any:
    return await value


async def collected(values: AsyncIterator[Any]) -> list[Any]:
    return [value async for value in values]


def bare(value: Any) -> Any:
    """Without the wrapping, at any depth."""
    if isinstance(value, Blocking):
        return value._inner
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(bare, value))
    return value

"""Fixtures for all tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.servers import NOTHING_FOUND, Candidate, Server, chosen_servers, running

pytest_plugins = ["pytester", "qmodel.testing.plugin"]


@pytest.fixture(
    scope="session",
    params=chosen_servers() or [None],
    ids=lambda candidate: candidate.name if candidate else "none",
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A private server, or several one after the other; see `servers.py`."""
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    with running(candidate) as started:
        yield started


@pytest.fixture(
    scope="session",
    params=["memory", *(chosen_servers() or [None])[:1]],
    ids=lambda one: one if isinstance(one, str) else one.name if one else "none",
)
def place(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Where the jobs are: this process, or a private server, of which one is enough."""
    if request.param == "memory":
        yield Server("memory", "memory://")
        return
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    with running(candidate) as started:
        yield started


@pytest.fixture
def url(place: Server) -> str:
    """The URL of a namespace there that nobody else has."""
    name = uuid.uuid4().hex
    return f"memory://{name}" if place.name == "memory" else f"{place.url}?prefix={name}:"

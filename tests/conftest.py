"""Fixtures for all tests."""

from __future__ import annotations

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

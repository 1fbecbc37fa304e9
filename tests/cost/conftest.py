"""Count costs on a server without other users: work left by other tests would be counted too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import NOTHING_FOUND, Candidate, Server, chosen_servers, running


@pytest.fixture(scope="module", params=chosen_servers() or [None], ids=lambda c: c.name if c else "none")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Start a server for this file."""
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    if candidate.url:
        pytest.skip("a given server may be used by others: costs are counted on private ones")
    with running(candidate) as started:
        yield started

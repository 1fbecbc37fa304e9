"""The fixture `subject`: the implementations that are compared with the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qmodel.conformance.subjects.base import Subject
from qmodel.conformance.subjects.by_url import open_subject
from tests.servers import NOTHING_FOUND, Candidate, chosen_servers, running

SERVERS = [
    pytest.param(candidate, id=candidate.name if candidate else "server", marks=pytest.mark.server)
    for candidate in chosen_servers() or [None]
]
CORNERS = [pytest.param("memory://", id="model"), pytest.param("embedded://", id="lua"), *SERVERS]


@pytest.fixture(scope="session", params=CORNERS)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """The model, the Lua library in this process, and on a real server."""
    if request.param is None:
        pytest.skip(NOTHING_FOUND)
    if not isinstance(request.param, Candidate):
        yield open_subject(request.param)
        return
    with running(request.param) as server:
        found = open_subject(server.url)
        yield found
        found.close()

"""Servers of a test's own, on each of the programs that were chosen."""

from __future__ import annotations

from functools import partial

import pytest

from tests.backends.helpers import Starter, started
from tests.servers import NOTHING_FOUND, Candidate, chosen_servers

PROGRAMS = [candidate for candidate in chosen_servers() if candidate.program]


@pytest.fixture(params=PROGRAMS or [None], ids=lambda found: found.name if found else "none")
def private(request: pytest.FixtureRequest) -> Starter:
    """Starts a server that the test may set up and kill as it likes."""
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    return partial(started, candidate.program)

"""Servers of a test's own, on each of the programs that were chosen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.backends.helpers import Starter, started
from tests.clusters import Cluster, cluster
from tests.servers import NOTHING_FOUND, Candidate, chosen_servers

PROGRAMS = [candidate for candidate in chosen_servers() if candidate.program]


@pytest.fixture(params=PROGRAMS or [None], ids=lambda found: found.name if found else "none")
def private(request: pytest.FixtureRequest) -> Starter:
    """Starts a server that the test may set up and kill as it likes."""
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    return partial(started, candidate.program)


@pytest.fixture(scope="session", params=PROGRAMS or [None], ids=lambda found: found.name if found else "none")
def nodes(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that tests may harm, if they mend it."""
    if request.param is None:
        pytest.skip(NOTHING_FOUND)
    with cluster(request.param.program) as made:
        yield made

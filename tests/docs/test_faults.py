"""The page on faults names tests and histories that exist."""

from __future__ import annotations

import re
from pathlib import Path

from qmodel.conformance.histories.directed.load import directed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations/faults.md").read_text()


def missing(page: str) -> list[str]:
    """The tests and histories that a page names, and that do not exist."""
    tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)
    absent = [name for file, name in tests if f"def {name}(" not in (ROOT / file).read_text()]
    known = {one.name.rpartition(".")[2] for one in directed()}
    return absent + [name for name in re.findall(r"history `(\w+)`", page) if name not in known]


def test_the_tests_of_the_page_exist() -> None:
    assert missing(PAGE) == []
    assert PAGE.count("::test_") >= 20


def test_a_test_that_does_not_exist_is_found() -> None:
    """The negative twin."""
    assert missing("`tests/docs/test_faults.py::test_nothing` history `none`") == ["test_nothing", "none"]

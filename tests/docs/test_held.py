"""Every rule of docs/semantics.md names what holds it: a law, a scene, or a test; and what it names exists.

A comment after a paragraph, a list item or in a row of a table, which no reader sees, names it:

    <!-- held by laws.retries_are_a_budget, scenes.retries_that_are_left, tests/property/test_journal.py -->

`laws.` are in `qmodel/conformance/laws`, `scenes.` are directed histories; a test may be a whole file. A comment below
a heading holds for the whole section. A paragraph that states no rule says so: `<!-- no rule -->`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from qmodel.conformance import laws
from qmodel.conformance.histories.directed import load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/semantics.md"

FREE = {
    "Semantics and guarantees": "what the page is",
    "In short": "a summary of the rules below",
    "How this is tested": "about tests",
    "Differences from qless": "a comparison; the rules stand above",
    "Defects of qless, and their fixes": "each row has the number of its test in tests/property/test_quirks.py",
}
"""The sections that state no rules of their own, and why."""

HELD = re.compile(r"<!-- (?:this section is )?held by\s+(.*?)\s*-->", re.DOTALL)
WHOLE = "<!-- this section is held by"
NO_RULE = "<!-- no rule -->"


class Block(NamedTuple):
    """A paragraph, a list item or a row of a table, with its section and its comments."""

    section: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Split the page into what may state a rule; without code, headings, and heads of tables."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    section, lines = "", prose.split("\n")
    block: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        starts = re.match(r"#|\||- |\d\. ", line)
        if block and (starts or not line.strip()):
            yield Block(section, "\n".join(block))
            block = []
        if line.startswith("#"):
            section = line.strip("# ")
        elif line.startswith("|"):
            if not (following.startswith("| ---") or line.startswith("| ---")):
                yield Block(section, line)
        elif line.strip():
            block.append(line)


def held(page: str) -> set[str]:
    """Everything that the page names as holding a rule."""
    return {name for found in HELD.findall(page) for name in re.split(r",\s+", found.strip())}


def loose(page: str) -> list[str]:
    """The blocks that name nothing that holds them."""
    found = list(blocks(page))
    whole = {block.section for block in found if block.text.startswith(WHOLE)}
    return [
        block.text
        for block in found
        if block.section not in FREE
        and block.section not in whole
        and not HELD.search(block.text)
        and NO_RULE not in block.text
        and not block.text.rstrip().endswith(":")
    ]


@cache
def _tests(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def exists(name: str) -> bool:
    """Whether something that is said to hold a rule exists."""
    kind, _, rest = name.partition(".")
    if kind == "laws":
        return rest in laws.LAWS
    if kind == "scenes":
        return rest in load.reasons()
    path, _, test = name.partition("::")
    return (ROOT / path).is_file() and path.startswith("tests/") and (not test or test in _tests(path))


def test_every_rule_of_the_semantics_names_what_holds_it() -> None:
    assert loose(PAGE.read_text(encoding="utf-8")) == []


def test_what_holds_a_rule_exists() -> None:
    names = held(PAGE.read_text(encoding="utf-8"))
    assert len(names) > 100
    assert sorted(name for name in names if not exists(name)) == []


def test_every_law_holds_a_rule_of_some_page() -> None:
    named = held(PAGE.read_text(encoding="utf-8"))
    assert sorted(name for name in laws.LAWS if f"laws.{name}" not in named and name not in CATALOGUED) == []


CATALOGUED = {
    "a_pop_gives_as_many_as_there_are", "a_wait_counts_one_idle_worker", "data_are_what_was_given",
    "options_change_as_they_are_set", "options_are_listed_with_their_values", "tracked_jobs_are_listed_in_order",
    "ended_jobs_are_listed_latest_first", "tags_are_listed_in_order", "the_state_is_what_the_events_say",
    "a_job_has_ended_when_its_events_say", "a_failure_records_group_time_and_worker",
    "a_job_that_is_given_back_has_no_worker", "a_failure_of_its_worker_keeps_the_message",
}  # fmt: skip
"""The laws that hold the sentences of docs/catalogue.md, the description of each operation."""


@pytest.mark.parametrize(
    ("page", "missing"),
    [
        ("# A\n\nA rule.\n", ["A rule."]),
        ("# A\n\nA rule.\n<!-- held by laws.x -->\n\n- One.\n- Two.\n  <!-- no rule -->\n", ["- One."]),
        ("# A\n\n<!-- this section is held by tests/x.py -->\n\nA rule.\n\n# B\n\nAnother.\n", ["Another."]),
        ("# A\n\n| a | b |\n| --- | --- |\n| c | d |\n| e | f <!-- held by laws.x, laws.y --> |\n", ["| c | d |"]),
        ("# A\n\nThese hold:\n\n```\nno rule\n```\n", []),
    ],
)
def test_a_rule_that_nothing_holds_is_found(page: str, missing: list[str]) -> None:
    assert loose(page) == missing


@pytest.mark.parametrize("name", ["laws.no_such_law", "scenes.no_such_scene", "tests/no_such.py", "docs/semantics.md"])
def test_a_link_that_leads_nowhere_is_found(name: str) -> None:
    assert not exists(name)
    assert exists("laws.retries_are_a_budget")
    assert not exists("tests/docs/test_held.py::test_no_such")

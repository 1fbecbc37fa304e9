"""The site takes along what its pages link to outside the documents."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT
from tools.docs.site import commands, outside


def test_links_that_leave_the_documents_are_found_by_their_place_in_the_repository() -> None:
    text = "[a](../examples/a.py#L3) [b](../wire.md) [c](other.md) [d](../../tests/d.py)"
    assert [place for _, place in outside("guides/page.md", text)] == ["tests/d.py"]
    assert [place for _, place in outside("page.md", text)] == ["examples/a.py", "wire.md", "../tests/d.py"]


def test_every_such_link_leads_to_something() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for _, place in outside(str(page.relative_to(ROOT / "docs")), page.read_text(encoding="utf-8")):
            assert (ROOT / place).exists(), (page, place)


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"([\w./-]+\.md)$", navigation, re.M)
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted({*there, "source/CHANGELOG.md"})


def test_commands_say_what_they_are() -> None:
    said = commands()
    assert "## qmodel worker" in said and "Usage: qmodel doctor" in said

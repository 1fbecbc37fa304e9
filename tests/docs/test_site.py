"""The site has the files that its pages link to outside `docs/`, and its search ranks guides before the reference."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT
from tools.docs.site import boost, commands, inside, outside


def test_links_out_of_docs_are_found_with_their_path_in_the_repository() -> None:
    text = "[a](../examples/a.py#L3) [b](../wire.md) [c](other.md) [d](../../tests/d.py)"
    assert [place for _, place in outside("guides/page.md", text)] == ["tests/d.py"]
    assert [place for _, place in outside("page.md", text)] == ["examples/a.py", "wire.md", "../tests/d.py"]


def test_every_link_out_of_docs_leads_to_a_file_or_folder() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for _, place in outside(str(page.relative_to(ROOT / "docs")), page.read_text(encoding="utf-8")):
            assert (ROOT / place).exists(), (page, place)


def test_links_of_a_copied_file_are_found_with_their_path_in_the_repository() -> None:
    text = "[a](docs/web.md#top) [b](tests/d.py) [c](https://example.com/e.md) [d](#f)"
    assert [place for _, place in inside("CHANGELOG.md", text)] == ["docs/web.md", "tests/d.py"]


def test_a_link_whose_text_goes_on_on_the_next_line_is_found() -> None:
    assert [place for _, place in inside("CHANGELOG.md", "- [The closed\n  graph](docs/proof.md)")] == ["docs/proof.md"]
    assert [place for _, place in outside("a.md", "[the\nmodel](../b.py)\n\n[no\n\nlink](../c.py)")] == ["b.py"]


def test_every_link_of_the_changelog_leads_to_a_file() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [place for _, place in inside("CHANGELOG.md", text) if not (ROOT / place).exists()] == []


def test_warnings_stop_the_build_of_the_site_everywhere() -> None:
    """`--quiet` hides warnings from `--strict`, so that a broken link passes."""
    builds = [
        line
        for name in ("dev", "tox.ini")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if "mkdocs build" in line
    ]
    assert len(builds) == 2 and all("--strict" in line and "--quiet" not in line for line in builds)


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"([\w./-]+\.md)$", navigation, re.M)
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted({*there, "source/CHANGELOG.md"})


def test_the_page_of_commands_has_their_help_texts() -> None:
    texts = commands()
    assert "## qmodel worker" in texts and "Usage: qmodel doctor" in texts


def test_guides_and_start_pages_rank_before_the_reference_in_the_search() -> None:
    first = ["index.md", "start/tutorial.md", "app.md", *_pages("guides"), *_pages("operations")]
    last = ["catalogue.md", "wire.md", "requirements.md", "driver.md", *_pages("reference")]
    assert min(map(boost, first)) > boost("semantics.md") == 1 > max(map(boost, last))


def test_the_navigation_has_the_guides_before_the_reference() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    parts = re.findall(r"^  - ([^:\n]+):", navigation, re.M)
    assert parts.index("Tutorial") < parts.index("Guides") < parts.index("Reference") < parts.index("Python API")


def _pages(folder: str) -> list[str]:
    return [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs" / folder).glob("*.md")]

"""Every Python example in the README and in the documents runs, in the order of its page, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.servers import Server

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.M | re.S)
SERVER = re.compile(r"redis://localhost(:6379)?(/0)?")
LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)


def examples(page: Path) -> list[tuple[str, str]]:
    """The Python examples of a page, each with the text that stands below it as its output."""
    return EXAMPLE.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_the_examples_run_and_print_what_they_say(
    page: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {}
    for code, output in examples(page):
        exec(SERVER.sub(f"{server.url}?prefix={page.stem}:", code), names)
        printed = capsys.readouterr().out
        if output:
            assert printed == output, code


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them: of equal ones the later are numbered."""
    found: list[str] = []
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.append(plain if plain not in found else f"{plain}-{found.count(plain)}")
    return set(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target, anchor in LINK.findall(text):
        if target.startswith("http"):
            continue
        there = page if not target else (page.parent / target).resolve()
        assert there.exists(), target
        if anchor:
            assert anchor[1:] in anchors(there), target + anchor


def test_nobody_is_told_to_install_the_package_of_somebody_else() -> None:
    folders = ("qmodel", "backends", "docs", "tests", "bench", "lua")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".lua")]
    wrong = re.compile("pip install '?" + "qmodel")
    assert [path.name for path in (*files, ROOT / "README.md") if wrong.search(path.read_text(encoding="utf-8"))] == []

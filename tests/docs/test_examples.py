"""Every example in the README and in the documents runs, in the order of its page, and prints the shown output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ELSEWHERE, ROOT, Example, Terminal, agrees, examples, importing, name_of, pages
from tests.servers import NOTHING_FOUND, Server, chosen_servers, running

LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)
LONG = ("archive", "campaign", "planning", "statistics")
"""Pages whose commands start Spark several times."""
RUN = [page for page in pages() if any(one.language in ("python", "sh") for one in examples(page))]


def typed(page: Path) -> bool:
    """Return whether the shell commands of a page also run."""
    return page.parent not in (ROOT, ROOT / "docs")


def perform(
    one: Example, terminal: Terminal, names: dict[str, object], capsys: pytest.CaptureFixture[str], commands: bool
) -> None:
    """Run an example, and compare its output with the shown one."""
    printed = ""
    if one.language == "sh" and one.title == ELSEWHERE and commands:
        terminal.start(one.text, one.output)
        return
    if one.language == "sh" and commands:
        status, printed = terminal.type(one.text)
        assert status == 0 or one.title == "Refused", f"{one.text}\n{printed}"
    elif one.language == "python" and not one.title:
        capsys.readouterr()
        exec(compile(terminal.here(one.text), "<example>", "exec", dont_inherit=True), names)
        printed = terminal.shown(capsys.readouterr().out)
    elif one.title and one.language not in ("sh", "console"):
        terminal.write(one.title, one.text)
        return
    else:
        return
    assert not one.output or agrees(printed, one.output), f"{one.text}\nprinted\n{printed}"


def follow(page: Path, url: str, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """Run the examples of a page from top to bottom."""
    terminal = Terminal(folder, f"{url}?prefix={page.stem}:")
    names: dict[str, object] = {"__name__": "page"}
    with importing(terminal.home):
        try:
            for one in examples(page):
                perform(one, terminal, names, capsys, typed(page))
        finally:
            ended = terminal.stop()
    for status, said, output in ended:
        assert status in (0, 130), said
        assert not output or agrees(said, output), said


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each page empty stores in memory."""
    monkeypatch.setattr("qmodel.backends.memory._NAMED", {})


@pytest.mark.parametrize("page", [page for page in RUN if not typed(page)], ids=name_of)
def test_the_examples_run_and_print_what_they_say(
    page: Path, server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    follow(page, server.url, capsys, tmp_path)


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    """The first server that can be had: to type all commands on each would take long."""
    candidates = chosen_servers()
    if not candidates:
        pytest.skip(NOTHING_FOUND)
    with running(candidates[0]) as started:
        yield started


def _marked(page: Path) -> object:
    return pytest.param(page, marks=pytest.mark.long) if page.parent.name == "pipeline" and page.stem in LONG else page


@pytest.mark.parametrize("page", [_marked(page) for page in RUN if typed(page)], ids=name_of)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, one_server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    follow(page, one_server.url, capsys, tmp_path)


def test_a_different_output_is_noticed() -> None:
    assert agrees("1 job in 3 ms\n", "1 job in ... ms\n")
    assert not agrees("2 jobs in 3 ms\n", "1 job in ... ms\n")
    assert not agrees("1\n2\n", "1\n")


def test_a_terminal_keeps_variables_and_finds_programs(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "memory://")
    terminal.write("a.py", "print('a file')")
    assert terminal.type("export WORD='two  words'") == (0, "")
    assert terminal.type('echo "$WORD"; python a.py') == (0, "two  words\na file\n")
    assert terminal.type("false; echo never") == (1, "")


def anchors(page: Path) -> set[str]:
    """Collect the anchors of a page's headings as GitHub makes them; repeated ones are numbered."""
    found: list[str] = []
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.append(plain if plain not in found else f"{plain}-{found.count(plain)}")
    return set(found)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_to_files_and_anchors(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target, anchor in LINK.findall(text):
        if target.startswith("http"):
            continue
        there = page if not target else (page.parent / target).resolve()
        assert there.exists(), target
        if anchor:
            assert anchor[1:] in anchors(there), target + anchor


def test_no_text_recommends_the_package_qmodel_of_the_public_index() -> None:
    folders = ("qmodel", "backends", "docs", "tests", "bench", "lua")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".lua")]
    wrong = re.compile("pip install '?" + "qmodel")
    assert [path.name for path in (*files, ROOT / "README.md") if wrong.search(path.read_text(encoding="utf-8"))] == []

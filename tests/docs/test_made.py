"""The generated files are current, complete, and agree with each other; the check of that can fail."""

from __future__ import annotations

import functools
import json
import re
import shlex
from pathlib import Path

import pytest

from qmodel.contract.lifecycle import STATES
from qmodel.contract.operations import CATALOGUE, SECTIONS
from qmodel.wire.codec import decode
from tests.servers import Server
from tools import docs
from tools.docs import client, state_picture, states
from tools.docs.story import World, steps

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The texts of all generated files: to make them takes seconds."""
    return {name: make() for name, make in docs.MADE.items()}


@pytest.fixture
def ready(made: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Take these texts instead of making them again."""
    monkeypatch.setattr(docs, "MADE", {name: functools.partial(str, text) for name, text in made.items()})


@pytest.mark.usefixtures("ready")
def test_every_generated_file_is_current() -> None:
    assert docs.stale(ROOT) == []


def rows(page: str) -> list[str]:
    """List the rows of the table of queues on a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text[text.index("| | qmodel | Celery") :].split("\n\n")[0].splitlines()


def test_the_readme_compares_queues_as_the_first_page_does() -> None:
    assert [row for row in rows("README.md") if row not in rows("docs/index.md")] == []


@pytest.mark.usefixtures("ready")
def test_missing_and_changed_files_are_named_and_written(tmp_path: Path) -> None:
    assert docs.stale(tmp_path) == list(docs.MADE)
    docs.write(tmp_path)
    assert docs.stale(tmp_path) == []
    (tmp_path / "docs/wire.md").write_text("something else", encoding="utf-8")
    assert docs.stale(tmp_path) == ["docs/wire.md"]
    assert docs.write(tmp_path) == ["docs/wire.md"]


def test_files_are_generated_the_same_each_time(made: dict[str, str]) -> None:
    assert {name: make() for name, make in docs.MADE.items()} == made


def test_the_data_name_every_operation_and_every_argument() -> None:
    data = json.loads(docs.MADE["docs/catalogue.json"]())
    assert list(data["operations"]) == list(CATALOGUE)
    for name, spec in CATALOGUE.items():
        assert [a["name"] for a in data["operations"][name]["arguments"]] == [a.name for a in spec.arguments]


@pytest.mark.parametrize("page", ["catalogue.md", "wire.md", "reference/client.md"])
def test_a_page_has_a_heading_for_each_section_in_the_order_of_the_catalogue(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^##+ (.+) \(`(\w+)`\)$", text, re.M)
    assert found == [(title, section) for section, title in SECTIONS.items()]


def test_every_section_of_the_client_page_has_methods_and_few_methods_have_no_section() -> None:
    found = client.by_section()
    assert all(found[section] for section in SECTIONS)
    assert {"execute", "execute_many", "wait", "close"} <= {method.name for method in found[None]}
    assert len(found[None]) < 12
    assert "Queue.put" in [method.title for method in found["put"]]


def test_the_picture_shows_every_state_that_can_be_reached_within_its_frame() -> None:
    picture = state_picture.svg()
    for state in states.reached():
        assert f">{state}</text>" in picture
    numbers = [float(x) for x in re.findall(r'\bx="([\d.]+)"', picture)]
    assert min(numbers) >= 0 and max(numbers) <= state_picture.WIDTH
    assert set(state_picture.PLACES) == {"", "end", *STATES}


def test_the_commands_of_the_wire_page_have_the_shown_replies_on_a_server(server: Server) -> None:
    from qmodel.backends.redis.connect import connect

    connect(f"{server.url}?prefix=wire:").close()
    world = World()
    with server.client() as client:
        for at, one in enumerate(steps(world)):
            if at == 0:
                client.execute_command("FCALL", "qmodel_v1_begin_epoch", 1, "wire:", str(one.moment), "", world.epoch)
            raw = client.execute_command("FCALL", one.function, 1, "wire:", str(one.moment), *one.arguments[1:])
            assert decode(one.op, raw) == decode(one.op, one.reply), one.op


@pytest.mark.parametrize("text", ["", "plain", "two\nlines", "a 'quote'", "tab\t\\n", "ü"])
def test_a_word_survives_the_shell(text: str) -> None:
    from tools.docs.wire import word

    if "\n" not in text and "\t" not in text:
        assert shlex.split(word(text)) == [text]
    else:
        body = word(text).removeprefix("$'").removesuffix("'")
        assert body.encode().decode("unicode_escape") == text


def test_the_semantics_page_lists_every_change_in_the_line_of_its_resend_kind() -> None:
    page = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    section = page[page.index("## Sending again") : page.index("## When a worker dies")]
    lines = [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in section.splitlines() if line.startswith("| `")]
    kinds = {
        frozenset(name for name, spec in CATALOGUE.items() if spec.resend == kind) for kind in docs.reference.resends()
    }
    assert {frozenset(line) for line in lines} == kinds - {
        frozenset(name for name, spec in CATALOGUE.items() if spec.reads)
    }

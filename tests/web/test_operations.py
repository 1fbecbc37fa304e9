"""Which operations people can do on the pages, and why not the others."""

from __future__ import annotations

import ast
import re

from qmodel.contract.operations import CATALOGUE
from qmodel.present.actions import ACTIONS
from qmodel.present.bulk import KINDS
from tests.servers import ROOT

ROOMS = [ROOT / "qmodel" / "web", ROOT / "qmodel" / "present"]

ELSEWHERE = {
    "a worker's, who holds the lease": "complete complete_and_pop complete_many fail heartbeat pop pop_any progress "
    "release retry metadata_increment",
    "a program's, that knows what belongs together": "put_many put_new request_add request_open request_put depends_on "
    "subscribe request_touch",
    "an auditor's, who executes it again": "journal",
    "an application's, that declares what recurs": "recur recur_advance recurring_unset",
    "an administrator's, who has restored a backup": "begin_epoch",
}
"""The operations that no page sends, and whose they are."""


def sent() -> set[str]:
    """The operations that the pages and their actions name."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for room in ROOMS for path in room.rglob("*.py")]
    return {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops"
    }


def test_every_operation_is_on_a_page_or_somebody_else_s() -> None:
    named = sent()
    here = {name for name in CATALOGUE if name.title().replace("_", "") in named}
    elsewhere = [name for names in ELSEWHERE.values() for name in names.split()]
    assert sorted([*here, *elsewhere]) == sorted(CATALOGUE)


def test_the_page_on_the_pages_names_every_action() -> None:
    page = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w-]+)`", page.split("The actions: ")[1].split("\n\n")[0])
    assert named == sorted([*ACTIONS, *(f"{kind}-all" for kind in KINDS)])

"""The documents that are made from the catalogue, and their check.

    python -m tools.docs            writes them
    python -m tools.docs --check    exits 1, and names those that are not current

Nothing in them is written by hand twice: operations, kinds, refusals, events and options come from the catalogue, the
states from `qmodel/contract/lifecycle.py`, what vectors expect from the model, and every reply in `docs/wire.md` is
what the Lua library replied when it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools import lua_catalogue
from tools.docs import kit, violation
from tools.docs.reference import as_json
from tools.docs.reference import markdown as catalogue_page
from tools.docs.state_picture import svg
from tools.docs.states import markdown as states_page
from tools.docs.wire import markdown as wire_page

MADE: dict[str, Callable[[], str]] = {
    "lua/contract/catalogue.lua": lua_catalogue.catalogue,
    "lua/wire/verbs.lua": lua_catalogue.verbs,
    "docs/catalogue.md": catalogue_page,
    "docs/catalogue.json": as_json,
    "docs/wire.md": wire_page,
    "docs/states.md": states_page,
    "docs/states.svg": svg,
    "docs/violation.svg": violation.svg,
    "docs/driver.md": kit.driver_page,
    "docs/driver.schema.json": kit.driver_schema,
    "docs/requirements.md": kit.requirements_page,
    "docs/vectors.schema.json": kit.vectors_schema,
    "qmodel/conformance/vectors/smoke.jsonl": kit.smoke,
    "qmodel/conformance/vectors/core.jsonl": kit.core,
    "qmodel/conformance/vectors/full.jsonl": kit.full,
}
"""Each document, and what makes its text."""


def stale(root: Path) -> list[str]:
    """The documents under a folder that are missing, or not what would be made now."""
    return [name for name, make in MADE.items() if _text(root / name) != make()]


def write(root: Path) -> list[str]:
    """Write the documents that are not current, in their order: some are made from those before; give their names."""
    written = []
    for name, make in MADE.items():
        text = make()
        if _text(root / name) != text:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
            written.append(name)
    return written


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None

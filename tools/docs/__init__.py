"""Write the generated files, and check that they are current.

    python -m tools.docs            writes them
    python -m tools.docs --check    names the files that are not current, and exits 1

No fact is written by hand twice. Operations, argument kinds, refusals, events and options come from the catalogue,
states from `qmodel/contract/lifecycle.py`, and the replies that vectors expect from the model. The replies in
`docs/wire.md` are replies of the Lua library.

The pictures of the dashboard and of `qmodel top` show the times at which they were taken, so they are not compared:
`python -m tools.docs.pictures` takes them again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools import lua_catalogue, sync_client
from tools.architecture.picture import svg as architecture_picture
from tools.docs import http, kit, overview, proof, violation
from tools.docs.architecture import markdown as architecture_page
from tools.docs.client import markdown as client_page
from tools.docs.reference import as_json
from tools.docs.reference import markdown as catalogue_page
from tools.docs.state_picture import svg
from tools.docs.states import markdown as states_page
from tools.docs.wire import markdown as wire_page

MADE: dict[str, Callable[[], str]] = {
    **{
        f"{sync_client.FOLDER}/{sync_client.target(source)}": partial(sync_client.text, source)
        for source in sync_client.TITLES
    },
    "lua/contract/catalogue.lua": lua_catalogue.catalogue,
    "lua/wire/verbs.lua": lua_catalogue.verbs,
    "docs/catalogue.md": catalogue_page,
    "docs/catalogue.json": as_json,
    "docs/wire.md": wire_page,
    "docs/reference/client.md": client_page,
    "docs/reference/http.md": http.markdown,
    "docs/states.md": states_page,
    "docs/states.svg": svg,
    "docs/overview.svg": overview.svg,
    "docs/violation.svg": violation.svg,
    "docs/architecture.md": architecture_page,
    "docs/architecture.svg": architecture_picture,
    "docs/proof.md": proof.markdown,
    "docs/proof.svg": proof.picture,
    "docs/driver.md": kit.driver_page,
    "docs/driver.schema.json": kit.driver_schema,
    "docs/requirements.md": kit.requirements_page,
    "docs/vectors.schema.json": kit.vectors_schema,
    "qmodel/conformance/vectors/smoke.jsonl": kit.smoke,
    "qmodel/conformance/vectors/core.jsonl": kit.core,
    "qmodel/conformance/vectors/full.jsonl": kit.full,
}
"""Each generated file, and the function that makes its text."""


def stale(root: Path) -> list[str]:
    """List the generated files under `root` that are missing or not current."""
    return [name for name, make in MADE.items() if _text(root / name) != make()]


def write(root: Path) -> list[str]:
    """Write the files that are not current, in their order, and return their names: some are made from earlier ones."""
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

"""Files for authors of bindings: `docs/driver.md`, `docs/requirements.md`, the schemas and the vectors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from qmodel.conformance.histories import matrix
from qmodel.conformance.kit import protocol, vectors
from qmodel.conformance.kit.probes import vectors as smoke_vectors
from qmodel.conformance.kit.requirements import REQUIREMENTS
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.schema import Schema
from tools.docs.reference import MADE, table

SCENARIOS = Path(__file__).resolve().parents[2] / "tests" / "conformance" / "scenarios"


# ---- schemas


def driver_schema() -> str:
    """Write the JSON Schema of the driver protocol."""
    return json.dumps(protocol.as_schema(), indent=1) + "\n"


def vectors_schema() -> str:
    """Write the JSON Schema of vectors."""
    return json.dumps(vectors.as_schema(), indent=1) + "\n"


# ---- vectors


def smoke() -> str:
    """Write the vectors of the probes."""
    return vectors.dumps(smoke_vectors(), "smoke")


def core() -> str:
    """Write the distilled vectors with the current outcomes of the model; `./dev mutate --distil` chooses them."""
    head, found = vectors.loads(vectors.path_of("core").read_text(encoding="utf-8"))
    again = [vectors.made(vector.id, "core", vector.why, vector.steps) for vector in found]
    return vectors.dumps(again, "core", power=head["power"])


def full() -> str:
    """Write the scenarios of the matrix as vectors."""
    found = []
    for path in sorted(SCENARIOS.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        why = dict(re.findall(r"^## (.+)\n(.+)$", text, re.M))
        for name, steps in matrix.parse(text).items():
            found.append(vectors.made(_id(f"{path.stem}:{name}"), "full", why[name], steps))
    assert len({vector.id for vector in found}) == len(found), "two scenarios have one id"
    return vectors.dumps(found, "full")


def _id(name: str) -> str:
    """Make an id from a scenario's name. It has no blanks: these separate words in lists of expected failures."""
    return re.sub(r"[^\w:-]+", "-", name.replace(": ", ":").replace("->", "to")).strip("-")


# ---- pages


def requirements_page() -> str:
    """Write the text of docs/requirements.md."""
    rows = [(f"`{one.id}`", one.sentence, f"[{_page(one.where)}]({_page(one.where)})") for one in REQUIREMENTS.values()]
    return MADE.format("qmodel/conformance/kit/requirements.py and the catalogue") + REQUIREMENTS_PAGE.format(
        requirements=table(("id", "requirement", "more"), rows)
    )


def _page(where: str) -> str:
    return where.removeprefix("docs/")


REQUIREMENTS_PAGE = """\
# The requirements

The requirements for a binding, one sentence each. A failure in the [conformance kit](binding.md) names the broken
requirement, and every vector names the requirements that it tests. Ids never change.

The first part is about drivers and bindings, in the order of the checks. Each requirement builds on the previous ones,
so look at the first failing one. The others follow from [the catalogue](catalogue.md).

{requirements}"""


def driver_page() -> str:
    """Write the text of docs/driver.md."""
    return MADE.format("qmodel/conformance/kit/protocol.py") + DRIVER_PAGE.format(
        version=protocol.PROTOCOL,
        commands="\n".join(map(_command, protocol.COMMANDS.values())),
        features=table(
            ("feature", "operations"),
            (
                (f"`{feature}`", ", ".join(f"`{name}`" for name in CATALOGUE if _is(feature, name)))
                for feature in protocol.FEATURES
            ),
        ),
    )


def _is(feature: str, name: str) -> bool:
    return protocol.feature_of(name) == feature


def _command(command: protocol.Command) -> str:
    rows = [("asked", *_row(field)) for field in command.asks]
    rows += [("answered", *_row(field)) for way in command.answers for field in way]
    example = "\n".join(f"{mark} {json.dumps(line, ensure_ascii=False)}" for mark, line in EXAMPLES[command.name])
    return f"### {command.name}\n\n{command.what}\n\n```text\n{example}\n```\n\n{table(('', 'field', 'meaning'), rows)}"


def _row(field: protocol.Field) -> tuple[str, str]:
    optional = "" if field.required else " Optional."
    return f"`{field.name}`", field.what + optional


EXAMPLES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "hello": (
        ("->", {"seq": 1, "cmd": "hello", "protocol": protocol.PROTOCOL, "qmodel": "0.1.0"}),
        (
            "<-",
            {"seq": 1, "protocol": protocol.PROTOCOL, "binding": "mine", "version": "0.1", "features": ["put.*"]},
        ),
    ),
    "reset": (
        ("->", {"seq": 2, "cmd": "reset", "url": "redis://127.0.0.1:6379/0", "prefix": "kit-7f:1:"}),
        ("<-", {"seq": 2, "ok": True}),
    ),
    "op": (
        ("->", {"seq": 3, "cmd": "op", "op": "put", "now": 0, "queue": "q", "jid": "a", "klass": "k", "data": ""}),
        ("<-", {"seq": 3, "reply": "a"}),
        ("->", {"seq": 4, "cmd": "op", "op": "complete", "now": 5, "jid": "a", "token": 7}),
        ("<-", {"seq": 4, "refusal": ["LOCK_LOST", "a", "7", "waiting", ""]}),
        ("->", {"seq": 5, "cmd": "op", "op": "drain", "now": 5, "queue": "q"}),
        ("<-", {"seq": 5, "skip": "not written yet"}),
    ),
    "batch": (
        (
            "->",
            {"seq": 6, "cmd": "batch", "ops": [{"op": "length", "now": 5, "queue": q} for q in "qr"]},
        ),
        ("<-", {"seq": 6, "results": [{"reply": 1}, {"reply": 0}]}),
    ),
    "bye": (("->", {"seq": 7, "cmd": "bye"}), ("<-", {"seq": 7, "ok": True})),
}
"""An example conversation; a test checks it against the schema."""


def example_lines() -> list[tuple[str, Schema]]:
    """List every line of the examples with the name of its definition in the schema."""
    kinds = {"->": "request", "<-": "answer"}
    return [(f"{name}_{kinds[mark]}", line) for name, lines in EXAMPLES.items() for mark, line in lines]


DRIVER_PAGE = """\
# The driver protocol

Version {version}. A driver is your program that lets the [conformance kit](binding.md) use your binding. It reads
requests from the standard input and writes answers to the standard output: JSON in UTF-8, one object per line, one
answer for each request, in the same order. [driver.schema.json](driver.schema.json) is the exact definition, and the
kit checks every answer against it.

- `seq` is a number in each request. The answer repeats it.
- Flush the output after each line.
- Write nothing else to the standard output. You may write to the standard error: the kit shows it after a failure.
- Exit at `bye`, and at the end of the input.

## Requests

{commands}
Numbers, texts and lists are those of JSON. A reply has the same form as in the vectors: a record of
[the catalogue](catalogue.md) is an object with its fields, a missing value is `null`, a flag is `true` or `false`.

## Features

The kit tests what a driver announces, and the driver may not skip it. Everything else is left out. A driver may
announce single operations instead of features: start with one. A feature is a section of the catalogue:
`put.*` stands for all operations of the section put.

{features}"""

"""`docs/driver.md`, `docs/requirements.md`, the schemas, and the vectors: what authors of bindings need."""

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
    """The JSON Schema of the driver protocol."""
    return json.dumps(protocol.as_schema(), indent=1) + "\n"


def vectors_schema() -> str:
    """The JSON Schema of vectors."""
    return json.dumps(vectors.as_schema(), indent=1) + "\n"


# ---- vectors


def smoke() -> str:
    """The probes."""
    return vectors.dumps(smoke_vectors(), "smoke")


def core() -> str:
    """The distilled vectors with what the model makes of them now; `./dev mutate --distil` chooses them."""
    head, found = vectors.loads(vectors.path_of("core").read_text(encoding="utf-8"))
    again = [vectors.made(vector.id, "core", vector.why, vector.steps) for vector in found]
    return vectors.dumps(again, "core", power=head["power"])


def full() -> str:
    """The scenarios of the matrix."""
    found = []
    for path in sorted(SCENARIOS.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        why = dict(re.findall(r"^## (.+)\n(.+)$", text, re.M))
        for name, steps in matrix.parse(text).items():
            found.append(vectors.made(_id(f"{path.stem}:{name}"), "full", why[name], steps))
    assert len({vector.id for vector in found}) == len(found), "two scenarios have one id"
    return vectors.dumps(found, "full")


def _id(name: str) -> str:
    """A scenario's name without blanks, which have a meaning in lists of expected failures."""
    return re.sub(r"[^\w:-]+", "-", name.replace(": ", ":").replace("->", "to")).strip("-")


# ---- pages


def requirements_page() -> str:
    """The text of docs/requirements.md."""
    rows = [(f"`{one.id}`", one.sentence, f"[{_page(one.where)}]({_page(one.where)})") for one in REQUIREMENTS.values()]
    return MADE.format("qmodel/conformance/kit/requirements.py and the catalogue") + REQUIREMENTS_PAGE.format(
        requirements=table(("id", "requirement", "more"), rows)
    )


def _page(where: str) -> str:
    return where.removeprefix("docs/")


REQUIREMENTS_PAGE = """\
# The requirements

What a binding must do, a sentence each. When the [conformance kit](binding.md) finds something, it names the
requirement that is broken; every vector names those that it touches. Ids never change.

The first part is about drivers and bindings, in the order in which the kit tries them: each builds upon those before
it, so the first one that fails says what is wrong. The rest follows from [the catalogue](catalogue.md).

{requirements}"""


def driver_page() -> str:
    """The text of docs/driver.md."""
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
    return f"### {command.name}\n\n{command.what}\n\n```text\n{example}\n```\n\n{table(('', 'part', 'what'), rows)}"


def _row(field: protocol.Field) -> tuple[str, str]:
    optional = "" if field.required else " May be left out."
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
"""A conversation; a test checks it against the schema."""


def example_lines() -> list[tuple[str, Schema]]:
    """Every line of the examples, with the name of its definition."""
    kinds = {"->": "request", "<-": "answer"}
    return [(f"{name}_{kinds[mark]}", line) for name, lines in EXAMPLES.items() for mark, line in lines]


DRIVER_PAGE = """\
# The driver protocol

Version {version}. A driver is a program of yours that lets the [conformance kit](binding.md) use your binding. It reads
requests on its standard input and answers on its standard output: JSON, one object a line, in UTF-8, one answer to each
request and in the same order. That is all; [driver.schema.json](driver.schema.json) has it exactly, and the kit checks
every answer with that.

- `seq` is a number in each request. The answer carries it back.
- Flush the output after each line.
- Write nothing else to the standard output. The standard error is free: the kit shows it when something goes wrong.
- End at `bye`, and when the input ends.

## Requests

{commands}
Numbers, texts and lists are those of JSON. A reply has the form that the vectors have: a record of
[the catalogue](catalogue.md) is an object with its fields, nothing is `null`, a flag is `true` or `false`.

## Features

What a driver announces is tried, and may not be skipped. What it does not announce is left out. It may name single
operations instead of features: begin with one.

{features}"""

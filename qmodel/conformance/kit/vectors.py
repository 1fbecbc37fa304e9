"""Vectors: histories with the expected outcome of each step, as JSON lines, for users without our runner.

The first line describes the file; each other line is one vector:

    {"id": "LEASE-2", "level": "smoke", "requirements": [...], "features": [...], "why": "...", "steps": [
        {"op": "put", "now": 0, "queue": "q", "jid": "a", "klass": "k", "data": "", "expect": {"reply": "a"}},
        {"op": "complete", "now": 0, "jid": "a", "token": 9, "expect": {"refusal": ["LOCK_LOST", "a", ...]}}]}

A vector begins in an empty namespace. A step has the form that `qmodel run` and drivers read. Ids are stable: an id is
never given to another history. There are three files, one for each level:

- `smoke`: one vector for each requirement on bindings (`probes`).
- `core`: distilled from the matrix of kills (`tools.mutation.distil`); the first line says what share of the mutants
  they kill.
- `full`: every scenario of the matrix (`conformance.histories.matrix`).

`./dev docs` writes the files; the expected outcomes always come from the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qmodel.conformance.histories import json_lines
from qmodel.conformance.kit import protocol
from qmodel.conformance.kit.requirements import of_step
from qmodel.conformance.subjects.base import Step
from qmodel.contract import schema
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.schema import Schema, record
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.version import __version__

VERSION = 2
"""The version of the format."""

FOLDER = Path(__file__).resolve().parents[1] / "vectors"
LEVELS = ("smoke", "core", "full")

Outcome = dict[str, Any]


class Vector(NamedTuple):
    """A history, the expected outcome of each step, and the reason for the history."""

    id: str
    level: str
    requirements: tuple[str, ...]
    features: tuple[str, ...]
    why: str
    steps: Sequence[Step]
    outcomes: Sequence[Outcome]


# ---- what the model answers


def plain(value: Any) -> Any:
    """Convert a reply to JSON: records become objects, tuples become arrays."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def outcome(value: Any) -> Outcome:
    """Convert a reply or refusal to JSON."""
    if isinstance(value, Refusal):
        return {"refusal": [value.code, *value.facts]}
    return {"reply": plain(value)}


def expected(steps: Iterable[Step]) -> list[Outcome]:
    """Execute a history on the model; give the outcome of each step."""
    store = Store()
    return [outcome(engine.step(store, *step)) for step in steps]


def made(id: str, level: str, why: str, steps: Sequence[Step], first: str = "") -> Vector:
    """Make a vector of a history; `first` is the requirement that the history tests, if it was written for one."""
    outcomes = expected(steps)
    touched: dict[str, None] = {first: None} if first else {}
    features: dict[str, None] = {}
    sent: set[Operation] = set()
    for (_, op), was in zip(steps, outcomes, strict=True):
        code = was["refusal"][0] if "refusal" in was else ""
        touched |= dict.fromkeys(of_step(op.spec.name, code, again=is_resend(op, sent)))
        features[protocol.feature_of(op.spec.name)] = None
        sent.add(op)
    return Vector(id, level, tuple(touched), tuple(features), why, steps, outcomes)


def is_resend(op: Operation, sent: Iterable[Operation]) -> bool:
    """Tell whether an operation was sent before and is recognised by its request id or token."""
    known = bool(getattr(op, "request", "")) or op.spec.resend == "lease"
    return known and op in sent


# ---- files


def dump(vector: Vector) -> dict[str, Any]:
    """Convert a vector to JSON."""
    found = vector._asdict()
    steps = zip(vector.steps, found.pop("outcomes"), strict=True)
    return found | {"steps": [json_lines.dump(step) | {"expect": was} for step, was in steps]}


def dumps(vectors: Sequence[Vector], level: str, **about: Any) -> str:
    """Write the text of a file of vectors; `about` is added to its first line."""
    operations = sum(len(vector.steps) for vector in vectors)
    head = {"format": VERSION, "qmodel": __version__, "level": level, "vectors": len(vectors), "operations": operations}
    return "".join(json.dumps(line) + "\n" for line in (head | about, *map(dump, vectors)))


def loads(text: str) -> tuple[dict[str, Any], list[Vector]]:
    """Read the text of a file: its first line, and its vectors. Raises ValueError for another format."""
    head, *lines = map(json.loads, text.splitlines())
    if head["format"] != VERSION:
        raise ValueError(f"these vectors have format {head['format']}, not {VERSION}")
    return head, [_loaded(line) for line in lines]


def _loaded(line: dict[str, Any]) -> Vector:
    outcomes = [step.pop("expect") for step in line["steps"]]
    steps = [json_lines.load(step) for step in line["steps"]]
    requirements, features = tuple(line["requirements"]), tuple(line["features"])
    return Vector(line["id"], line["level"], requirements, features, line["why"], steps, outcomes)


def path_of(level: str) -> Path:
    """Give the path of the file of a level."""
    return FOLDER / f"{level}.jsonl"


def load(level: str) -> list[Vector]:
    """Read the vectors of a level."""
    return loads(path_of(level).read_text(encoding="utf-8"))[1]


# ---- the schema


def as_schema() -> dict[str, Any]:
    """Give the JSON Schema of one line of a file of vectors."""
    text: Schema = {"type": "string"}
    texts: Schema = {"type": "array", "items": text}
    whole: Schema = {"type": "integer"}
    head = {"format": {"const": VERSION}, "qmodel": text, "level": {"enum": list(LEVELS)}}
    head |= {"vectors": whole, "operations": whole}
    vector = {"id": text, "level": {"enum": list(LEVELS)}, "requirements": texts}
    vector |= {"features": {"type": "array", "items": {"enum": list(protocol.FEATURES)}}, "why": text}
    vector["steps"] = {"type": "array", "items": schema.ref("step"), "minItems": 1}
    return {
        "$schema": schema.DIALECT,
        "title": f"qmodel vectors {VERSION}: one line of a file",
        "anyOf": [schema.ref("head"), schema.ref("vector")],
        "$defs": {
            "head": record(head) | {"additionalProperties": True},
            "vector": record(vector),
            "step": {"anyOf": [_step(name) for name in CATALOGUE]},
            **schema.inside(),
            "refusal": record({"refusal": schema.refusal()}),
            **schema.records(),
        },
    }


def _step(name: str) -> Schema:
    spec = CATALOGUE[name]
    reply = record({"reply": schema.of_reply(spec)})
    return schema.operation(spec, schema.step_head(spec) | {"expect": {"anyOf": [reply, schema.ref("refusal")]}})

"""The driver protocol: the runner's requests and the driver's answers.

JSON lines, one object each, lock-step: the runner writes a request to the driver's standard input, the driver writes
one answer to its standard output (and flushes it), and so on. `seq` is opaque; the answer carries it back. What a
driver writes to its standard error is free text. The driver ends at `bye`, or when its input ends.

The messages are defined here as data. `docs/driver.md` and the JSON Schemas are generated from them, and the runner
checks every answer against the schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from qmodel.contract import schema
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.schema import Schema, record, ref

PROTOCOL = 1
"""The version of this protocol."""

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}


class Field(NamedTuple):
    """A field of a message."""

    name: str
    schema: Schema
    what: str
    required: bool = True


class Command(NamedTuple):
    """A request of the runner: its fields, and the fields of each possible answer."""

    name: str
    what: str
    asks: tuple[Field, ...]
    answers: tuple[tuple[Field, ...], ...]


def feature_of(operation: str) -> str:
    """Name the feature of an operation: all operations of its section of the catalogue, such as `put.*`."""
    return f"{CATALOGUE[operation].section}.*"


FEATURES = tuple(dict.fromkeys(map(feature_of, CATALOGUE)))
"""The features that a driver may announce; it may also name single operations."""


def operations_of(announced: Iterable[str]) -> frozenset[str]:
    """List the operations of a driver that announces these features and operations."""
    names = frozenset(announced)
    return frozenset(name for name in CATALOGUE if name in names or feature_of(name) in names)


_FEATURES: Schema = {"type": "array", "items": {"enum": [*FEATURES, *CATALOGUE]}, "minItems": 1}

DONE = (Field("ok", {"const": True}, "true"),)

OUTCOMES = (
    (Field("reply", {}, "What the operation replied, in the form that the vectors have."),),
    (Field("refusal", schema.refusal(), "The code of the refusal, and its facts in order."),),
    (Field("skip", TEXT, "Why the binding cannot do that. Counts as a fault if its feature was announced."),),
    (Field("crash", TEXT, "What the binding raised that is no refusal. Always a fault."),),
)
"""The four outcomes of an operation; an answer has exactly one of these fields."""

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(
            "hello",
            "The first request. Says who is there.",
            (
                Field("protocol", {"const": PROTOCOL}, "The version of this protocol."),
                Field("qmodel", TEXT, "The version of the model."),
            ),
            (
                (
                    Field("protocol", {"const": PROTOCOL}, "The version that the driver speaks."),
                    Field("binding", TEXT, "The name of the binding."),
                    Field("version", TEXT, "Its version."),
                    Field("features", _FEATURES, "What it can do: features, or single operations; one at least."),
                    Field("batch", FLAG, "Whether it understands `batch`.", required=False),
                ),
            ),
        ),
        Command(
            "reset",
            "Begin anew: from now on work in this namespace, which is empty or was used before. Delete nothing.",
            (
                Field("url", TEXT, "The server, as `redis://127.0.0.1:6379/0` or `unix:///tmp/socket?db=0`."),
                Field("prefix", TEXT, "What all keys of the namespace begin with."),
            ),
            (DONE,),
        ),
        Command(
            "op",
            "Execute one operation once. Its arguments stand beside `op` and `now`, with the catalogue's names and "
            "units; what is left out has its default. Bad values are sent on purpose: send them on.",
            (
                Field("op", {"enum": list(CATALOGUE)}, "The name of the operation."),
                Field("now", schema.NOW, "The moment, in milliseconds since the epoch; null for the server's clock."),
            ),
            OUTCOMES,
        ),
        Command(
            "batch",
            "Execute several operations, one after the other, each as `op` does. Only if `hello` announced it.",
            (Field("ops", {"type": "array", "items": ref("step")}, "The operations, each with `op` and `now`."),),
            ((Field("results", {"type": "array", "items": ref("outcome")}, "An outcome each, in order."),),),
        ),
        Command("bye", "The last request: end.", (), (DONE,)),
    )
}


def _parts(fields: tuple[Field, ...], head: dict[str, Schema]) -> Schema:
    required = [*head, *(field.name for field in fields if field.required)]
    return record(head | {field.name: field.schema | {"description": field.what} for field in fields}, required)


SEQ: dict[str, Schema] = {"seq": {"type": "integer"}}


def _request(command: Command) -> Schema:
    head = SEQ | {"cmd": {"const": command.name}}
    return schema.steps(head) if command.name == "op" else _parts(command.asks, head)


def _answer(command: Command) -> Schema:
    ways = [_parts(fields, SEQ) for fields in command.answers]
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def definitions() -> dict[str, Schema]:
    """Collect every definition that the schema of the protocol uses."""
    return {
        **{f"{name}_request": _request(command) for name, command in COMMANDS.items()},
        **{f"{name}_answer": _answer(command) for name, command in COMMANDS.items()},
        "outcome": {"anyOf": [_parts(fields, {}) for fields in OUTCOMES]},
        "step": schema.steps(),
        **schema.inside(),
        **{f"{spec.name}_reply": schema.of_reply(spec) for spec in CATALOGUE.values()},
        **schema.records(),
    }


def as_schema() -> dict[str, Any]:
    """Write the JSON Schema of the protocol: any line in either direction."""
    return {
        "$schema": schema.DIALECT,
        "title": f"qmodel driver protocol {PROTOCOL}",
        "anyOf": [ref(f"{name}_{kind}") for kind in ("request", "answer") for name in COMMANDS],
        "$defs": definitions(),
    }


DEFINITIONS = definitions()


def fault_of_answer(command: str, answer: Any) -> str | None:
    """Find what is wrong with the form of an answer; None if nothing is. The judge decides whether a reply is right."""
    if not isinstance(answer, dict):
        return f"it is {type(answer).__name__}, not an object"
    if command == "op":  # most lines are such answers, and the checks by hand are faster
        if len(answer) == 2 and "reply" in answer and type(answer.get("seq")) is int:
            return None
        ways = [name for fields in OUTCOMES if (name := fields[0].name) in answer]
        if len(ways) != 1:
            return f"it has {' and '.join(map(repr, ways)) or 'none'} of 'reply', 'refusal', 'skip' and 'crash'"
    return schema.fault(answer, DEFINITIONS[f"{command}_answer"], DEFINITIONS)

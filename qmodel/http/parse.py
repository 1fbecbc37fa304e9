"""Reads JSON and queries as operations of the catalogue.

Arguments have the catalogue's names and units; a missing one, or null, has its default. The engine checks types and
ranges of values; this module refuses only values that have no place in an operation.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from qmodel.client.convert import parse_exact_instant
from qmodel.contract import redaction
from qmodel.contract.arguments import REQUEST, Digits, Flag, Kind, ListOf, Operations, Whole
from qmodel.contract.operations import CATALOGUE, Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.errors import error_of
from qmodel.http.problems import Problem, meant

_KEYS = uuid.UUID("6f1d5e0e-33c3-4b4e-9d0b-9b8a3c0f5a11")
"""The namespace of the job ids that are made of idempotency keys."""


# ---- JSON


def loads(raw: bytes) -> Any:
    """Parse a body; raise a Problem if it is not JSON, or not unambiguous."""
    try:
        return json.loads(raw.decode(), parse_constant=_no_constant, parse_float=finite)
    except RecursionError:
        raise Problem("BAD_JSON", "The body is nested too deeply.", "Send deeply nested data as a text.") from None
    except ValueError as error:
        raise Problem("BAD_JSON", f"The body is not JSON: {error}.", "Send an object as JSON, in UTF-8.") from None


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON")


def finite(text: str) -> float:
    """Read a number with a fraction or an exponent; ValueError if it is too large."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def an_object(value: Any, what: str = "body") -> dict[str, Any]:
    """Give a value that must be an object, or raise a Problem."""
    if not isinstance(value, dict):
        raise Problem("BAD_JSON", f"The {what} is not an object.", 'Send for example {"queue": "emails"}.')
    return value


# ---- operations


def operation(spec: Spec, given: Mapping[str, Any], key: str | None = None) -> Operation:
    """Make an operation with the arguments of an object, and a request id made of an idempotency key."""
    values = {name: value for name, value in given.items() if value is not None}
    known = {argument.name: argument for argument in spec.arguments}
    for name in (name for name in values if name not in known):
        raise Problem(
            "UNKNOWN_ARGUMENT",
            f"{spec.name} has no argument {name!r}.",
            meant(name, known),
            {"operation": spec.name, "argument": name},
        )
    if "request" in values and not REQUEST.accepts(values["request"]):
        raise error_of(Refusal("BAD_ARGUMENT", (spec.name, "request")))
    if key is not None and "request" in known:
        values.setdefault("request", key)
    for argument in spec.arguments:
        if argument.name in values:
            values[argument.name] = _value(argument.kind, _read(spec, argument.name, values[argument.name]), key)
        elif argument.required:
            values[argument.name] = left_out(spec, argument.name, argument.kind, key)
    data = values.get("data")
    if isinstance(data, str) and redaction.is_shown(data):
        raise Problem(
            "BAD_ARGUMENT",
            "The data are redacted: storing them would replace the values that are not shown.",
            "Send the whole data.",
            {"operation": spec.name, "argument": "data"},
        )
    return spec.cls(**values)


def _read(spec: Spec, name: str, value: Any) -> Any:
    """Read the moment of a put, which may be an ISO 8601 time, as milliseconds since the epoch."""
    if (spec.name, name) != ("put", "at") or not isinstance(value, str):
        return value
    try:
        return parse_exact_instant(value)
    except ValueError as error:
        sentence, _, next_step = str(error).partition(": ")
        next_step = next_step[:1].upper() + next_step[1:]
        raise Problem(
            "BAD_ARGUMENT", f"at = {sentence}.", f"{next_step}.", {"operation": "put", "argument": "at"}
        ) from None


def _value(kind: Kind, value: Any, key: str | None) -> Any:
    """Read an argument from JSON: arrays become tuples, objects in them operations, 7.0 a whole number; a token may be
    a string of digits.
    """
    if isinstance(value, float) and isinstance(kind, Whole) and value.is_integer():
        return int(value)
    if isinstance(kind, Digits) and isinstance(value, str):
        return word(kind, value)
    if not isinstance(value, list):
        return value
    if isinstance(kind, Operations):
        return tuple(_inside(CATALOGUE[kind.of.lower()], n, one, key) for n, one in enumerate(value))
    return tuple(value)


def _inside(spec: Spec, number: int, one: Any, key: str | None) -> Operation:
    """Make an operation inside another one. It has no request id; its job id is the same when all is sent again."""
    given = an_object(one, f"{spec.name} inside")
    if key is not None and spec.name == "put" and given.get("jid") is None:
        given = given | {"jid": jid_of(f"{key}/{number}")}
    return operation(spec, given)


def left_out(spec: Spec, name: str, kind: Kind, key: str | None) -> Any:
    """Fill in an argument that has no default: a new job gets an id, and empty data."""
    if spec.name == "put" and name == "jid":
        return os.urandom(16).hex() if key is None else jid_of(key)
    if spec.name == "put" and name == "data":
        return ""
    raise Problem(
        "MISSING_ARGUMENT",
        f"{spec.name} needs the argument {name!r}.",
        f"It must be {kind.expected}.",
        {"operation": spec.name, "argument": name},
    )


def jid_of(key: str) -> str:
    """Make the id of a job that is put without one under an idempotency key: the same each time."""
    return uuid.uuid5(_KEYS, key).hex


# ---- queries


def from_query(spec: Spec, pairs: Sequence[tuple[str, str]], key: str | None = None) -> Operation:
    """Make an operation with the arguments of a query: numbers and booleans as words, lists by repeated names."""
    found: dict[str, Any] = {}
    kinds = {argument.name: argument.kind for argument in spec.arguments}
    for name, text in pairs:
        kind = kinds.get(name)
        if isinstance(kind, ListOf):
            found.setdefault(name, []).append(word(kind.item, text))
        else:
            found[name] = word(kind, text)
    return operation(spec, found, key)


def word(kind: Kind | None, text: str) -> Any:
    """Read a value from a word; a word that cannot be read stays, and the engine refuses it.

    >>> word(Whole(0, 9), "7"), word(Flag(), "true"), word(Whole(0, 9), "seven")
    (7, True, 'seven')
    """
    if isinstance(kind, Whole) and text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 30:
        return int(text)
    if isinstance(kind, Flag):
        return {"true": True, "1": True, "false": False, "0": False}.get(text, text)
    return text

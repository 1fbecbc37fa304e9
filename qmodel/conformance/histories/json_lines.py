"""Histories as JSON lines: one object a step, as `qmodel run FILE.jsonl` takes it.

    {"op": "put", "now": 0, "queue": "q", "jid": "a", "klass": "k", "data": ""}

Arguments have the catalogue's names and units; what is left out has its default; lists are arrays,
and operations inside another one are objects without `op` and `now`. Lines that are empty or begin
with `#` are comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from qmodel.conformance.subjects.base import Step
from qmodel.contract.arguments import Digits, Kind, Operations
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.wire import as_json

T = TypeVar("T")


def dump(step: Step) -> dict[str, Any]:
    """Turn a step into an object for JSON."""
    return {"op": step.op.spec.name, "now": step.now, **as_json.arguments(step.op)}


def load(found: dict[str, Any]) -> Step:
    """Make a step from an object; a ValueError says what is wrong with it. Values are not checked here."""
    rest = dict(found)
    name, now = rest.pop("op", None), rest.pop("now", None)
    if name not in CATALOGUE:
        raise ValueError(f"there is no operation {name!r}")
    if type(now) is not int:
        raise ValueError(f"{name}: now must be a whole number of milliseconds, not {now!r}")
    return Step(now, _operation(name, rest))


def _operation(name: str, found: dict[str, Any]) -> Operation:
    spec = CATALOGUE[name]
    known = {argument.name: argument.kind for argument in spec.arguments}
    unknown = sorted(found.keys() - known.keys())
    missing = [a.name for a in spec.arguments if a.required and a.name not in found]
    if unknown or missing:
        what = "has no argument" if unknown else "needs the argument"
        raise ValueError(f"{name} {what} {(unknown or missing)[0]!r}")
    return spec.cls(**{key: _value(known[key], value) for key, value in found.items()})


def _value(kind: Kind, value: Any) -> Any:
    """Make an argument from JSON: arrays become tuples, objects in them operations; a token may be a string."""
    if isinstance(kind, Digits) and isinstance(value, str) and re.fullmatch("0|[1-9][0-9]{0,29}", value, re.ASCII):
        return int(value)
    if not isinstance(value, list):
        return value
    if isinstance(kind, Operations):
        name = "".join("_" + c.lower() if c.isupper() else c for c in kind.of).strip("_")
        return tuple(_operation(name, one) if isinstance(one, dict) else one for one in value)
    return tuple(value)


def dumps(history: Iterable[Step]) -> str:
    """Write a history as JSON lines."""
    return "".join(json.dumps(dump(step)) + "\n" for step in history)


def loads(text: str) -> list[Step]:
    """Read a history from JSON lines; a ValueError names the line that is wrong."""
    return list(read(text.splitlines(), load))


def read(lines: Iterable[str], make: Callable[[dict[str, Any]], T]) -> Iterator[T]:
    """Read JSON lines, and give what `make` makes of each object; a ValueError names the line that is wrong."""
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise ValueError("not an object")
            made = make(found)
        except ValueError as wrong:
            raise ValueError(f"line {number}: {wrong}") from None
        yield made

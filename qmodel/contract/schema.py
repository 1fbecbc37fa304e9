"""JSON Schemas of what travels: made from the catalogue, so that they follow it; and a check against them.

Of JSON Schema (2020-12) only what is needed here is used, and `fault` understands all that is used: so the runner
checks what drivers say with the very schemas that their authors can read, and needs no package for it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

from qmodel.contract import replies
from qmodel.contract.arguments import Flag, Kind, ListOf, Operations, Whole
from qmodel.contract.operations import CATALOGUE, Spec
from qmodel.contract.refusals import REASONS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


def record(properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
    """An object with these properties and no others; all are required, or those that are named."""
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def ref(name: str) -> Schema:
    """A definition by its name."""
    return {"$ref": f"#/$defs/{name}"}


# ---- replies


def of_type(hint: Any) -> Schema:
    """The schema of a type that occurs in replies; records are definitions."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is tuple:
        return {"type": "array", "items": of_type(get_args(hint)[0])}
    if get_origin(hint) in (Union, types.UnionType):
        return {"anyOf": [of_type(one) for one in get_args(hint)]}
    return ref(hint.__name__)


def records() -> dict[str, Schema]:
    """A definition for each record of which replies are made."""
    found: dict[str, Schema] = {}
    left = [hint for shape in replies.SHAPES.values() for hint in _records_in(shape)]
    while left:
        cls = left.pop()
        if cls.__name__ not in found:
            hints = get_type_hints(cls)
            found[cls.__name__] = record({name: of_type(hints[name]) for name in cls._fields})
            left += [inner for name in cls._fields for inner in _records_in(hints[name])]
    return dict(sorted(found.items()))


def _records_in(hint: Any) -> Iterator[Any]:
    if hasattr(hint, "_fields"):
        yield hint
    for part in get_args(hint):
        if part is not Ellipsis:
            yield from _records_in(part)


def of_reply(spec: Spec) -> Schema:
    """The schema of what an operation replies."""
    return of_type(replies.SHAPES[spec.reply])


def refusal() -> Schema:
    """A code, and its facts as texts in the order of the catalogue."""
    text = {"type": "string"}
    return {"type": "array", "prefixItems": [{"enum": list(REASONS)}], "items": text, "minItems": 1}


# ---- operations


def of_kind(kind: Kind) -> Schema:
    """The schema of an argument. Bad values are sent on purpose, so it says of which type they are, not how great."""
    if isinstance(kind, Operations):
        name = next(spec.name for spec in CATALOGUE.values() if spec.cls.__name__ == kind.of)
        return {"type": "array", "items": ref(f"{name}_inside"), "description": kind.expected}
    if isinstance(kind, ListOf):
        return {"type": "array", "items": _scalar(kind.item), "description": kind.expected}
    return _scalar(kind) | {"description": kind.expected}


def _scalar(kind: Kind) -> Schema:
    if isinstance(kind, Whole):
        return {"type": ["integer", "string"]}
    return {"type": ["boolean", "string"]} if isinstance(kind, Flag) else {"type": "string"}


def operation(spec: Spec, head: dict[str, Schema]) -> Schema:
    """An operation with its arguments; what `head` names stands before them."""
    found = record(
        head | {a.name: of_kind(a.kind) for a in spec.arguments},
        [*head, *(a.name for a in spec.arguments if a.required)],
    )
    return {"description": spec.summary, **found}


def steps(head: dict[str, Schema] | None = None) -> Schema:
    """Any operation at a moment, in the form that `qmodel run` takes too."""
    return {"anyOf": [operation(spec, (head or {}) | step_head(spec)) for spec in CATALOGUE.values()]}


def step_head(spec: Spec) -> dict[str, Schema]:
    """What stands before the arguments of every operation."""
    return {"op": {"const": spec.name}, "now": NOW}


NOW: Schema = {"type": ["integer", "null"], "description": "milliseconds since the epoch; null for the server's clock"}


def inside() -> dict[str, Schema]:
    """A definition for each operation that may stand inside another one."""
    kinds = [a.kind for spec in CATALOGUE.values() for a in spec.arguments]
    names = {kind.of for kind in kinds if isinstance(kind, Operations)}
    return {f"{s.name}_inside": operation(s, {}) for s in CATALOGUE.values() if s.cls.__name__ in names}


# ---- checking

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def fault(value: Any, schema: Schema, definitions: dict[str, Schema], path: str = "") -> str | None:
    """The first thing that is wrong with a value, as `path: what`; None when there is nothing."""
    here = path or "it"
    if "$ref" in schema:
        return fault(value, definitions[schema["$ref"].rpartition("/")[2]], definitions, path)
    if "anyOf" in schema:
        faults = [fault(value, one, definitions, path) for one in schema["anyOf"]]
        return None if None in faults else _closest(value, schema["anyOf"], faults)
    if "const" in schema and not _same(value, schema["const"]):
        return f"{here} is {_shown(value)}, not {_shown(schema['const'])}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{here} is {_shown(value)}, which is none of {', '.join(map(str, schema['enum']))}"
    if "type" in schema and not _is(value, schema["type"]):
        wanted = schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])
        return f"{here} is {_shown(value)}, not of type {wanted}"
    if isinstance(value, dict):
        return _fault_of_object(value, schema, definitions, path)
    return _fault_of_array(value, schema, definitions, path) if isinstance(value, list) else None


def _closest(value: Any, schemas: list[Schema], faults: list[str | None]) -> str | None:
    """The fault of the alternative that was meant: the one whose constants the value has."""
    if isinstance(value, dict):
        for schema, found in zip(schemas, faults, strict=True):
            fixed = {n: p["const"] for n, p in schema.get("properties", {}).items() if "const" in p}
            if fixed and all(value.get(name) == const for name, const in fixed.items()):
                return found
    return faults[-1]


def _is(value: Any, wanted: str | list[str]) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _fault_of_object(value: dict[str, Any], schema: Schema, definitions: dict[str, Schema], path: str) -> str | None:
    known: dict[str, Schema] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path or 'it'} has no {name!r}"
    for name, one in value.items():
        if name in known:
            found = fault(one, known[name], definitions, f"{path}.{name}" if path else name)
            if found is not None:
                return found
        elif schema.get("additionalProperties") is False:
            return f"{path or 'it'} has {name!r}, which nobody knows"
    return None


def _fault_of_array(value: list[Any], schema: Schema, definitions: dict[str, Schema], path: str) -> str | None:
    if len(value) < schema.get("minItems", 0):
        return f"{path or 'it'} has {len(value)} elements"
    first: list[Schema] = schema.get("prefixItems", [])
    for at, one in enumerate(value):
        item = first[at] if at < len(first) else schema.get("items", {})
        found = fault(one, item, definitions, f"{path}[{at}]")
        if found is not None:
            return found
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."

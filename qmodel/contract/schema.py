"""JSON Schemas of operations and replies, made from the catalogue; and a validator.

They use a small part of JSON Schema (2020-12), and `fault` understands all of that part. So the runner validates what
drivers send with the same schemas that driver authors read, and needs no package for it.
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
    """Make the schema of an object with these properties and no others. All are required, or those listed."""
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def ref(name: str) -> Schema:
    """Refer to a definition by name."""
    return {"$ref": f"#/$defs/{name}"}


# ---- replies


def of_type(hint: Any) -> Schema:
    """Make the schema of a type that occurs in replies; records are definitions."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is tuple:
        return {"type": "array", "items": of_type(get_args(hint)[0])}
    if get_origin(hint) in (Union, types.UnionType):
        return {"anyOf": [of_type(one) for one in get_args(hint)]}
    return ref(hint.__name__)


def records() -> dict[str, Schema]:
    """Make a definition for each record that occurs in replies."""
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
    """Make the schema of an operation's reply."""
    return of_type(replies.SHAPES[spec.reply])


def refusal() -> Schema:
    """Make the schema of a refusal: a code, and its facts as texts in the order of the catalogue."""
    text = {"type": "string"}
    return {"type": "array", "prefixItems": [{"enum": list(REASONS)}], "items": text, "minItems": 1}


# ---- operations


def of_kind(kind: Kind) -> Schema:
    """Make the schema of an argument. It gives the type and not the range, because bad values are sent on purpose."""
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
    """Make the schema of an operation with its arguments, after the properties in `head`."""
    found = record(
        head | {a.name: of_kind(a.kind) for a in spec.arguments},
        [*head, *(a.name for a in spec.arguments if a.required)],
    )
    return {"description": spec.summary, **found}


def steps(head: dict[str, Schema] | None = None) -> Schema:
    """Make the schema of any operation at a moment, in the form that `qmodel run` accepts too."""
    return {"anyOf": [operation(spec, (head or {}) | step_head(spec)) for spec in CATALOGUE.values()]}


def step_head(spec: Spec) -> dict[str, Schema]:
    """Make the properties that come before the arguments of every operation."""
    return {"op": {"const": spec.name}, "now": NOW}


NOW: Schema = {"type": ["integer", "null"], "description": "milliseconds since the epoch; null for the server's clock"}


def inside() -> dict[str, Schema]:
    """Make a definition for each operation that may be nested in another one."""
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
    """Find the first fault of a value, as `path: fault`; None if it is valid."""
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
    """Choose the fault of the intended alternative: the one with constants that match the value."""
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
            return f"{path or 'it'} has the unknown field {name!r}"
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

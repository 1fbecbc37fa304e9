"""Conversion of arguments and results of types that JSON does not have, by their annotations.

JSON's types (text, numbers, lists, dictionaries with text as keys, and any nesting of these) are passed on unchanged,
at no cost. All other types are converted by a library: pydantic for its own models, else msgspec, which knows
dataclasses, attrs, its own structs, dates and times, UUIDs, Decimals, enums, sets, tuples and bytes.

An annotation that cannot be resolved at run time (its import stands under TYPE_CHECKING) is ignored: then the value
must be of JSON's types.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from qmodel.app.errors import DeclarationError
from qmodel.client.convert import encode


class Converter(NamedTuple):
    """Converts a value to JSON's types, and back."""

    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


_PLAIN: Final = frozenset({str, int, float, bool, type(None), None, list, dict, object, Any, inspect.Parameter.empty})
_ABC = collections.abc
_LISTS: Final = frozenset({list, _ABC.Sequence, _ABC.Iterable, _ABC.Collection, _ABC.MutableSequence})
_DICTS: Final = frozenset({dict, _ABC.Mapping, _ABC.MutableMapping})


def converter(annotation: Any, where: str) -> Converter | None:
    """Make the converter for an annotation; None if its values need no conversion to JSON.

    `where` names the place for the message. Raises DeclarationError if a library is needed and not installed.
    """
    if is_plain(annotation):
        return None
    if any(_is_pydantic(part) for part in _parts(annotation)):
        return _by_pydantic(annotation)
    return _by_msgspec(annotation, where)


def is_plain(annotation: Any) -> bool:
    """Whether all values of an annotation are of JSON's types."""
    if isinstance(annotation, typing.TypeVar | str | typing.ForwardRef):
        return True
    try:
        if annotation in _PLAIN:
            return True
    except TypeError:  # not hashable: Annotated with a list, say
        return False
    if annotation in _LISTS | _DICTS:
        return True
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _LISTS or origin in (typing.Union, types.UnionType):
        return all(map(is_plain, inner))
    if origin in _DICTS:
        return inner[0] in (str, Any) and is_plain(inner[1])
    if origin is typing.Literal:
        return all(type(value) in _PLAIN for value in inner)
    if hasattr(annotation, "__supertype__"):
        return is_plain(annotation.__supertype__)
    if typing.is_typeddict(annotation):
        return all(is_plain(_bare(part)) for part in typing.get_type_hints(annotation).values())
    return False


Check = Callable[[Any], bool]
"""Whether a value is of an annotation."""


def check_of(annotation: Any) -> Check | None:
    """Make the check of a plain annotation (`is_plain`); None if every value passes it.

    It accepts what a type checker does, and tuples as lists, because JSON stores them so.
    """
    if isinstance(annotation, typing.TypeVar | str | typing.ForwardRef) or annotation in _ANYTHING:
        return None
    if annotation in _TYPES:
        return _is_a(_TYPES[annotation])
    origin, inner = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin in _LISTS:
        return _all_are(check_of(inner[0]) if inner else None)
    if origin in _DICTS:
        return _values_are(check_of(inner[1]) if inner else None)
    if origin in (typing.Union, types.UnionType):
        return _any_of([check_of(one) for one in inner])
    if origin is typing.Literal:
        return lambda value: any(value == one and type(value) is type(one) for one in inner)
    if hasattr(annotation, "__supertype__"):
        return check_of(annotation.__supertype__)
    return _has_fields(annotation)


_ANYTHING: Final = frozenset({object, Any, inspect.Parameter.empty})
_TYPES: Final[dict[Any, type | tuple[type, ...]]] = {
    str: str, int: int, float: (int, float), bool: bool, None: type(None), type(None): type(None),
}  # fmt: skip


def _is_a(kind: type | tuple[type, ...]) -> Check:
    return lambda value: isinstance(value, kind)


def _all_are(check: Check | None) -> Check:
    if check is None:
        return _is_a((list, tuple))
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _values_are(check: Check | None) -> Check:
    if check is None:
        return _is_a(dict)
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _any_of(checks: list[Check | None]) -> Check | None:
    given = [check for check in checks if check is not None]
    return (lambda value: any(check(value) for check in given)) if len(given) == len(checks) else None


def _has_fields(typed: Any) -> Check:
    """Make the check of a TypedDict; its values may have more fields than it declares."""
    hints = typing.get_type_hints(typed, include_extras=True)
    checks = [(name, one) for name, hint in hints.items() if (one := check_of(_bare(hint))) is not None]
    wraps = {name: typing.get_origin(hint) for name, hint in hints.items()}  # __required_keys__ misses those in strings
    needed = {name for name in typed.__required_keys__ if wraps[name] is not typing.NotRequired}
    needed |= {name for name, wrap in wraps.items() if wrap is typing.Required}

    def check(value: Any) -> bool:
        if not isinstance(value, dict) or not needed <= value.keys():
            return False
        return all(one(value[name]) for name, one in checks if name in value)

    return check


def _bare(annotation: Any) -> Any:
    """Remove Required and NotRequired from an annotation."""
    wrapped = typing.get_origin(annotation) in (typing.Required, typing.NotRequired)
    return typing.get_args(annotation)[0] if wrapped else annotation


def _parts(annotation: Any) -> list[Any]:
    """List an annotation and all annotations inside it."""
    found = [annotation, *getattr(annotation, "__metadata__", ())]
    for part in typing.get_args(annotation):
        found += _parts(part) if not isinstance(part, list) else []
    return found


def _is_pydantic(part: Any) -> bool:
    module = getattr(type(part), "__module__", "")
    return hasattr(part, "__pydantic_validator__") or module.startswith(("pydantic.", "annotated_types"))


def _by_pydantic(annotation: Any) -> Converter:
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(annotation)

    def dump(value: Any) -> Any:
        return adapter.dump_python(value, mode="json")

    # Through JSON, because strict models accept more there: a date may be text.
    return Converter(dump, lambda value: adapter.validate_json(encode(value)))


def _by_msgspec(annotation: Any, where: str) -> Converter:
    try:
        import msgspec
    except ImportError:
        raise DeclarationError(
            f"{where} is annotated as {inspect.formatannotation(annotation)}, which is not a type of JSON.",
            "Run: pip install msgspec; or use a type of JSON, and convert it yourself.",
        ) from None
    try:
        unknown = _unknown(msgspec.inspect.type_info(annotation))
    except TypeError as error:
        unknown = str(error)
    if unknown:
        raise DeclarationError(
            f"{where} is annotated as {inspect.formatannotation(annotation)}, which cannot be stored: {unknown}.",
            "Use a dataclass, a model of msgspec or pydantic, or a type of JSON.",
        )

    def dump(value: Any) -> Any:
        return msgspec.to_builtins(value, str_keys=True)

    return Converter(dump, lambda value: msgspec.convert(value, annotation, str_keys=True))


def _unknown(info: Any) -> str:
    """Find the first type in msgspec's description of a type that msgspec cannot convert; empty if there is none."""
    ahead: list[Any] = [info]
    seen: set[int] = set()
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one).__name__ == "CustomType":
            return f"nothing is known of {one.cls.__qualname__}"
        if isinstance(one, tuple):
            ahead += one
        elif hasattr(one, "__struct_fields__"):
            ahead += [getattr(one, name) for name in one.__struct_fields__]
    return ""

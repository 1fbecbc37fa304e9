"""Arguments and results that JSON does not have: converted by what their annotations say.

What JSON has (text, numbers, lists, dictionaries with text as keys, and any of these in each other) is left as it is,
at no cost. Everything else is left to a library that is made for it: pydantic where one of its models is meant, else
msgspec, which knows dataclasses, attrs, its own structs, dates and times, UUIDs, Decimals, enums, sets, tuples, bytes.

An annotation that cannot be had while the program runs (its import stands under TYPE_CHECKING) says nothing: then the
value must be one that JSON has.
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
    """From a value to what JSON has, and back."""

    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


_PLAIN: Final = frozenset({str, int, float, bool, type(None), None, list, dict, object, Any, inspect.Parameter.empty})
_ABC = collections.abc
_LISTS: Final = frozenset({list, _ABC.Sequence, _ABC.Iterable, _ABC.Collection, _ABC.MutableSequence})
_DICTS: Final = frozenset({dict, _ABC.Mapping, _ABC.MutableMapping})


def converter(annotation: Any, where: str) -> Converter | None:
    """What converts values of an annotation; None where JSON has them.

    `where` names the place for the message. Raises DeclarationError where a library is needed that is not there.
    """
    if is_plain(annotation):
        return None
    if any(_is_pydantic(part) for part in _parts(annotation)):
        return _by_pydantic(annotation)
    return _by_msgspec(annotation, where)


def is_plain(annotation: Any) -> bool:
    """Whether JSON has all values of an annotation."""
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


def _bare(annotation: Any) -> Any:
    """What stands inside Required and NotRequired."""
    wrapped = typing.get_origin(annotation) in (typing.Required, typing.NotRequired)
    return typing.get_args(annotation)[0] if wrapped else annotation


def _parts(annotation: Any) -> list[Any]:
    """An annotation and all that stands inside it."""
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

    # As JSON, for what is strict with Python's values is not with JSON's: a date may be text there.
    return Converter(dump, lambda value: adapter.validate_json(encode(value)))


def _by_msgspec(annotation: Any, where: str) -> Converter:
    try:
        import msgspec
    except ImportError:
        raise DeclarationError(
            f"{where} is annotated as {inspect.formatannotation(annotation)}, which JSON does not have.",
            "Run: pip install msgspec; or annotate it as what JSON has, and convert it yourself.",
        ) from None
    try:
        unknown = _unknown(msgspec.inspect.type_info(annotation))
    except TypeError as error:
        unknown = str(error)
    if unknown:
        raise DeclarationError(
            f"{where} is annotated as {inspect.formatannotation(annotation)}, which cannot be stored: {unknown}.",
            "Annotate it as a dataclass, a model of msgspec or pydantic, or as what JSON has.",
        )

    def dump(value: Any) -> Any:
        return msgspec.to_builtins(value, str_keys=True)

    return Converter(dump, lambda value: msgspec.convert(value, annotation, str_keys=True))


def _unknown(info: Any) -> str:
    """The first type inside a description of msgspec's that it would not know how to make, or empty."""
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

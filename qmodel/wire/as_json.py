"""Journal entries as JSON: the call as a line for `qmodel run`, and its outcome.

A reply stands as arrays: a record is the array of its fields, in the order of qmodel/contract/replies.py. It is written
by the thousand, and compared as text.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from functools import partial
from json.encoder import encode_basestring
from typing import Any, Union, get_args, get_origin, get_type_hints

from qmodel.contract import replies
from qmodel.contract.arguments import ListOf, Operations
from qmodel.contract.operations import CATALOGUE, Operation, Spec
from qmodel.contract.refusals import Refusal

_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def call(now: int, op: Operation) -> str:
    """Write an operation and its time.

    >>> from qmodel.contract.operations import Get
    >>> call(5, Get("a"))
    '{"op":"get","now":5,"jid":"a"}'
    """
    return _text({"op": op.spec.name, "now": now, **arguments(op)})


def outcome(found: Any) -> str:
    """Write a reply or a Refusal.

    >>> outcome(("a", None)), outcome(Refusal("JOB_NOT_FOUND", ("a",)))
    ('{"reply":["a",null]}', '{"refused":["JOB_NOT_FOUND","a"]}')
    """
    if type(found) is Refusal:
        return _text({"refused": [found.code, *map(str, found.facts)]})
    if type(found) is str:  # most replies
        return '{"reply":' + encode_basestring(found) + "}"
    return _text({"reply": found})


def arguments(op: Operation) -> dict[str, Any]:
    """Convert the given arguments of an operation to JSON's types."""
    found = {}
    for argument in op.spec.arguments if op.named else _FEWER[op.spec.name]:
        value = getattr(op, argument.name)
        if argument.required or value != argument.default or type(value) is not type(argument.default):
            found[argument.name] = [_plain(one) for one in value] if isinstance(value, tuple) else value
    return found


_FEWER = {name: tuple(a for a in spec.arguments if not a.optional) for name, spec in CATALOGUE.items()}
"""The arguments of an operation if no optional argument was given."""


def _plain(value: Any) -> Any:
    return arguments(value) if isinstance(value, Operation) else value


def read(text: str) -> tuple[int, Operation]:
    """Read the time and the operation that `call` wrote. Raises ValueError for any other text."""
    try:
        return made(json.loads(text))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a call: {text[:100]!r}") from error


def made(found: dict[str, Any]) -> tuple[int, Operation]:
    """Read the time and the operation from parsed JSON, and consume it. Raises KeyError, TypeError, AttributeError."""
    make = _MAKERS[found.pop("op")]
    return found.pop("now"), make(found)


Maker = Callable[[dict[str, Any]], Operation]


def _maker(spec: Spec) -> Maker:
    """Write the function that makes an operation of its parsed arguments, and consumes them.

    It is compiled, like the encoders of the wire, because Python compares the name of each argument in a dictionary
    with all parameters of the class: the required ones are given without names. A put takes a third less time.
    """
    known: dict[str, Any] = {"cls": spec.cls}
    lines = ["def make(found):", " take = found.pop"]
    for a in spec.arguments:
        if isinstance(a.kind, ListOf | Operations):
            known[f"read_{a.name}"] = partial(_operations, a.kind.of) if isinstance(a.kind, Operations) else tuple
            lines += [f" if {a.name!r} in found:", f"  found[{a.name!r}] = read_{a.name}(found[{a.name!r}])"]
    given = [f"take({a.name!r})" for a in spec.arguments if a.required]
    given += ["request=take('request', '')" for a in spec.arguments if a.name == "request"]
    exec("\n".join([*lines, f" return cls({', '.join([*given, '**found'])})"]), known)
    made: Maker = known["make"]
    return made


def _operations(name: str, found: list[dict[str, Any]]) -> tuple[Operation, ...]:
    """Make a list of operations of one class."""
    return tuple(map(_MAKERS[_BY_CLASS[name]], found))


_BY_CLASS = {spec.cls.__name__: name for name, spec in CATALOGUE.items()}
_MAKERS = {name: _maker(spec) for name, spec in CATALOGUE.items()}


def found(op: Operation, text: str) -> Any:
    """Read the reply or the Refusal that `outcome` wrote for an operation."""
    said = json.loads(text)
    if "refused" in said:
        return Refusal(said["refused"][0], tuple(said["refused"][1:]))
    return _typed(replies.SHAPES[op.spec.reply], said["reply"])


def _typed(hint: Any, value: Any) -> Any:
    if value is None or not isinstance(value, list):
        return value
    if get_origin(hint) in (Union, types.UnionType):
        return _typed(next(one for one in get_args(hint) if one is not type(None)), value)
    if get_origin(hint) is tuple:
        items = tuple(_typed(get_args(hint)[0], one) for one in value)
        return replies.Stages(items) if hint == tuple[replies.Stage, ...] else items
    if not hasattr(hint, "_fields"):
        return tuple(value)
    hints = get_type_hints(hint)
    return hint(*(_typed(hints[name], one) for name, one in zip(hint._fields, value, strict=True)))

"""Decode operations from the wire. This is the mirror of lua/wire/arguments.lua: both refuse the same calls, and both
check the wire before they execute anything.

There are two readers. The quick reader does not check texts, because the engine checks them anyway. If it finds
anything unusual, the strict reader reads the operation again in the order of the Lua library, argument by argument, so
that the refusal names the same argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from qmodel.contract.arguments import MOST, REQUEST, TIME, Kind, ListOf, Operations, Whole
from qmodel.contract.operations import CATALOGUE, Argument, Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.wire.layout import positional

Words = Sequence[str]
Accept = Callable[[str], Any]
"""Converts a word to its value; gives None if the word is not valid."""

_WHOLE: Final = re.compile(r"-?[1-9][0-9]*", re.ASCII)
_SIZE: Final = Whole(1, 100_000)
_FLAGS: Final = {"1": True, "0": False}
_BY_CLASS: Final = {spec.cls.__name__: name for name, spec in CATALOGUE.items()}


class Bad(Exception):
    """Raised for an invalid argument."""


def whole(word: str, kind: Kind) -> int | None:
    """Read a whole number in the form that lua/wire/arguments.lua accepts; None if the kind does not accept it."""
    if len(word) > 30 or not (word == "0" or _WHOLE.fullmatch(word)):
        return None
    value = int(word)
    return value if kind.accepts(value) else None


def _accepting(kind: Kind, strictly: bool) -> Accept:
    if isinstance(kind, Whole):
        return lambda word: whole(word, kind)
    if kind.wire == "flag":
        return _FLAGS.get
    return (lambda word: word if kind.accepts(word) else None) if strictly else lambda word: word


class Reader:
    """Reads operations of one kind. With `strictly` it also checks texts; otherwise the engine does."""

    def __init__(self, spec: Spec, strictly: bool) -> None:
        places = {argument.name: place for place, argument in enumerate(spec.arguments)}
        self.spec = spec
        self.strictly = strictly
        self.made = [None if a.required else a.default for a in spec.arguments]
        self.placed = [(places[a.name], _accepting(a.kind, strictly), a.name) for a in positional(spec)]
        self.named = {a.name: (places[a.name], a, _accepting(_item(a), strictly)) for a in spec.arguments}
        self.lists = [(places[a.name], a) for a in spec.arguments if isinstance(a.kind, ListOf | Operations)]
        self.needs_list = any(argument.required for _, argument in self.lists)
        self.request = places.get("request")
        if not strictly and self.request is not None:
            del self.named["request"]  # `operation` overwrites it; only the strict reader checks the one given here

    def operation(self, words: Words, at: int, request: str) -> Operation:
        """Read the operation whose arguments begin at `at`; raises Bad."""
        values = self.values(words, at, len(words))
        if self.request is not None:
            values[self.request] = request
        return self.spec.cls(*values)

    def values(self, words: Words, at: int, end: int) -> list[Any]:
        """Read the arguments in words[at:end]; raises Bad."""
        values = self.made.copy()
        for place, accept, name in self.placed:
            value = accept(words[at]) if at < end else None
            if value is None:
                raise Bad(name)
            values[place] = value
            at += 1
        if at < end or self.needs_list:
            while at < end:
                at = self._pair(values, words, at, end)
            self._check_lists(values)
        return values

    def _pair(self, values: list[Any], words: Words, at: int, end: int) -> int:
        """Read one `name value` pair; give the offset of the next one."""
        name = words[at]
        value = words[at + 1] if at + 1 < end else ""
        found = self.named.get(value if name == "no" else name)
        is_list = found is not None and isinstance(found[1].kind, ListOf)
        if found is None or at + 1 == end or (name == "no" and not is_list):
            raise Bad("option" if found is None else name)
        place, argument, accept = found
        if not self.strictly and isinstance(values[place], str | int) and values[place] is not self.made[place]:
            raise Bad(name)  # given twice: the strict reader decides whether the first one was valid
        if name == "no":
            values[place] = []
        elif isinstance(argument.kind, Operations):
            return self._inner(values, place, argument.kind.of, name, words, at, end)
        else:
            read = accept(value)
            if read is None:
                raise Bad(name)
            values[place] = [*(values[place] or ()), read] if is_list else read
        return at + 2

    def _inner(self, values: list[Any], place: int, of: str, name: str, words: Words, at: int, end: int) -> int:
        size = whole(words[at + 1], _SIZE)
        if size is None or at + 2 + size > end:
            raise Bad(name)
        reader = READERS[self.strictly][_BY_CLASS[of]]
        inner = reader.spec.cls(*reader.values(words, at + 2, at + 2 + size))
        values[place] = [*(values[place] or ()), inner] if values[place] else [inner]
        return at + 2 + size

    def _check_lists(self, values: list[Any]) -> None:
        for place, argument in self.lists:
            value = values[place]
            if value is None:
                if argument.required:
                    raise Bad(argument.name)
            elif type(value) is list:
                if not getattr(argument.kind, "least", 1) <= len(value) <= MOST:
                    raise Bad(argument.name)
                values[place] = tuple(value)


def _item(argument: Argument) -> Kind:
    return argument.kind.item if isinstance(argument.kind, ListOf) else argument.kind


READERS: Final = tuple({name: Reader(spec, strictly) for name, spec in CATALOGUE.items()} for strictly in (False, True))
QUICK: Final = READERS[False]
STRICT: Final = READERS[True]


def operation(name: str, words: Words) -> Operation:
    """Read the call `now request argument ...` of an operation; raises Bad."""
    try:
        return QUICK[name].operation(words, 2, words[1])
    except Bad:
        return STRICT[name].operation(words, 2, words[1])


def moment(word: str) -> int | None:
    """Read a time in milliseconds; give None if the word is not one."""
    return whole(word, TIME)


def refusal(spec: Spec, words: Words, at: int) -> Refusal | None:
    """Give the refusal of the call `now request argument ...` at words[at:] if its arguments are invalid, else None."""
    now, request = (*words[at : at + 2], "", "")[:2]
    if now and moment(now) is None:
        return Refusal("BAD_ARGUMENT", (spec.name, "now"))
    reader = READERS[True][spec.name]
    try:
        reader.values(words, at + 2, len(words))
    except Bad as bad:
        return Refusal("BAD_ARGUMENT", (spec.name, str(bad)))
    if request and reader.request is not None and not REQUEST.accepts(request):
        return Refusal("BAD_ARGUMENT", (spec.name, "request"))
    return None

"""Mutants of bounds that no small scope reaches; they are counted apart from what the closed graph misses.

A bound limits how many things there are, or how many of them one call handles: a thousand dependents, a hundred
throttles. A mutant that lets one more through, or leaves out the check, differs from the right code only where so many
things exist. A scope of two jobs has never half as many. `reached` proves that: it halves all bounds of the model at
once and executes histories. A history that does not notice half of a bound cannot notice a bound that is one off.

Only these changes count: the bound's own value by one; the strictness of a comparison with it; a condition that is
nothing but such a comparison, and the statements behind it; such a comparison left out beside other conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from qmodel.backends import bundle
from qmodel.contract import arguments
from tools.mutation import model, python
from tools.mutation.mutants import Mutant

NAMES: Final = (
    "MOST", "IDLE_MOST", "THROTTLES_MOST", "TIMES_MOST", "CHUNK", "SWEEP", "QUEUES", "KEPT", "TEXTS", "EXAMINED",
)  # fmt: skip
"""What the bounds are called on both sides."""

LEAST: Final = 64
"""The least value of a bound that counts as out of reach; families reach smaller ones."""

_STRICTNESS: Final = {(">", ">="), (">=", ">"), ("<", "<="), ("<=", "<")}
_CATALOGUE: Final = "catalogue.most"
"""What the library calls the bound of the contract, `arguments.MOST`."""

_NAME: Final = rf"((?:\w+\.)?(?:{'|'.join(NAMES)})|{re.escape(_CATALOGUE)})\b"
_DEFINED: Final = re.compile(rf"^(?:local )?{_NAME} = \d+$")
_NEXT: Final = re.compile(rf"\s*{_NAME}")
_GUARD: Final = re.compile(rf"^(?:if|elif|elseif) (?:(?!\bor\b).)+ (?:>=|==|>) {_NAME}(?::| then)$")
_END: Final = r"(?=:| then| do| and | or |$)"
_BESIDE: Final = re.compile(
    rf" and (?:(?!\b(?:and|or)\b).)+ (?:<=|<) {_NAME}{_END}| or (?:(?!\b(?:and|or)\b).)+ (?:>=|==|>) {_NAME}{_END}"
)


def of(mutant: Mutant) -> str:
    """Name the bound that must be reached before a mutant can differ from the right code; "" if there is none."""
    found = (name for name in _named(mutant) if value(mutant.file, name) >= LEAST)
    return next(found, "")


def value(file: str, name: str) -> int:
    """Give the value that a name has in a file of either side, as the model has it; 0 if the model has none."""
    if name == _CATALOGUE:
        return arguments.MOST
    where, _, last = name.rpartition(".")
    own = file.removeprefix("model/")
    path = f"model/{own if not where or own.endswith('/' + where) else 'state/' + where}"
    found = getattr(import_module("qmodel." + path.replace("/", ".")), last, 0) if path in python.MUTATED else 0
    return found if type(found) is int else 0


def reached(recorded: model.Recording) -> bool:
    """Tell whether any history notices that all bounds are halved."""
    with halved():
        return bool(recorded.judge_texts({}).kills)


@contextmanager
def halved() -> Iterator[list[str]]:
    """Halve all bounds of the model within this context; yields where they are."""
    found = [(file, name) for file in python.MUTATED for name in NAMES if value(file, name) >= LEAST]
    right = [(import_module("qmodel." + file.replace("/", ".")), name, value(file, name)) for file, name in found]
    try:
        for module, name, most in right:
            setattr(module, name, most // 2)
        yield [f"{file}.{name}" for file, name in found]
    finally:
        for module, name, most in right:
            setattr(module, name, most)


def _named(mutant: Mutant) -> Iterator[str]:
    """Give the bounds that the change of a mutant is about, if it is one of those above."""
    text = python.read(mutant.file) if mutant.side == "model" else bundle.read(mutant.file)
    raw = text.encode()
    was, behind = raw[mutant.start : mutant.end].decode(), raw[mutant.end : mutant.end + 80].decode()
    if mutant.operator == "constant" and (found := _DEFINED.match(mutant.was)):
        yield found[1]
    if (was, mutant.new) in _STRICTNESS and (found := _NEXT.match(behind)):
        yield found[1]
    if mutant.operator == "condition" and mutant.new.lower() == "false" and (found := _GUARD.match(mutant.was)):
        yield found[1]
    for one in _BESIDE.finditer(mutant.was):
        if _without(mutant.was, one) == mutant.becomes:
            yield one[1] or one[2]
    if guard := _GUARD.match(_around(text, mutant.line)):
        yield guard[1]


def _without(line: str, found: re.Match[str]) -> str:
    return line[: found.start()] + line[found.end() :]


def _around(text: str, at: int) -> str:
    """Give the line that a line is indented under."""
    lines = text.split("\n")[:at]
    depth = len(lines[-1]) - len(lines[-1].lstrip())
    above = (one for one in reversed(lines) if one.strip() and len(one) - len(one.lstrip()) < depth)
    return next(above, "").strip()

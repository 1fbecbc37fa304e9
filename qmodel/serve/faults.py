"""Inject faults on purpose, so that a binding can be tested against them.

    <fault>[=<milliseconds>][:<name>][@<percent>%][x<times>]

    lost                 every call is executed, and then its connection is closed without a reply
    lost:complete        the same for every complete
    noscript@5%          one call in twenty, drawn by the seed
    delay=300:popx2      the replies of the next two pops are sent 300 ms later
    loading:PING         every PING

The name is an operation, or a command in capitals; a rule without a name applies to every call of an operation or of a
dialect. Rules are tried in order, and the first one that applies is used.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qmodel.backends.bundle import LIBRARY
from qmodel.contract.operations import CATALOGUE
from qmodel.serve.functions import calls_of

FAULTS: Final = {
    "not-found": "the library is gone: ERR Function not found, until it is loaded again",
    "noscript": "all scripts are gone: NOSCRIPT, until they are loaded again",
    "busy": "not executed: BUSY",
    "loading": "not executed: LOADING",
    "readonly": "not executed: READONLY",
    "drop": "not executed, and the connection is closed",
    "lost": "executed, and the connection is closed before a byte of the reply",
    "cut": "executed, and the connection is closed in the middle of the reply",
    "delay": "executed, and the reply is sent later",
}
"""The faults, and what each does."""

SENTENCES: Final = {
    "not-found": "ERR Function not found",
    "noscript": "NOSCRIPT No matching script. Please use EVAL.",
    "busy": "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
    "loading": "LOADING Redis is loading the dataset in memory",
    "readonly": "READONLY You can't write against a read only replica.",
}
"""The errors that are sent instead of executing the command."""

_CALLS: Final = ("FCALL", "FCALL_RO", "EVALSHA", "EVAL")
_RULE: Final = re.compile(
    rf"({'|'.join(FAULTS)})(?:=(\d{{1,6}}))?(?::([A-Za-z_]+?))?(?:@(\d{{1,3}}(?:\.\d+)?)%)?(?:x(\d{{1,9}}))?", re.ASCII
)


@dataclass(slots=True)
class Rule:
    """One rule, and how often it was applied."""

    text: str
    fault: str
    ms: int
    name: str
    chance: float
    left: int | None
    applied: int = 0

    def is_about(self, words: Sequence[str]) -> bool:
        """Whether the rule applies to a command, chance aside."""
        command = words[0].upper()
        if self.fault == "noscript" and command != "EVALSHA":
            return False
        if self.fault == "not-found" and command not in ("FCALL", "FCALL_RO"):
            return False
        if self.name.isupper():
            return command == self.name
        if command not in _CALLS:
            return False
        if not self.name:
            return operation_of(words) in (*CATALOGUE, *_NOT_ONE)
        return any(name == self.name for name, _ in operations_of(words))


_NOT_ONE: Final = ("calls", "qless", "qless_document")
"""What `operation_of` says of several operations, and of the calls of a dialect."""


def operation_of(words: Sequence[str]) -> str:
    """Find the operation that a call names, or what else it is; an empty text if neither."""
    if words[0].upper().startswith("FCALL"):
        return words[1].removeprefix(f"{LIBRARY}_") if len(words) > 1 else ""
    if len(words) > 2 and words[2] == "0":
        return "qless"
    return words[4] if len(words) > 4 and words[4] in (*CATALOGUE, "calls") else "qless_document"


def operations_of(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """List the operations of a call, one or several, each with its moment, its request id and its arguments."""
    name, at = operation_of(words), 4 if words[0].upper().startswith("FCALL") else 5
    if name == "calls":
        return [(spec.name, given) for spec, given in calls_of(words, at) or ()]
    return [(name, list(words[at:]))] if name in CATALOGUE else []


def rule(text: str) -> Rule:
    """Parse a rule. Raises ValueError with the reason if it is not valid."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not a rule: write <fault>[=<ms>][:<name>][@<percent>%][x<times>]; faults are "
                         f"{', '.join(FAULTS)}")  # fmt: skip
    fault, ms, name, percent, times = found.groups()
    if name and not name.isupper() and name not in CATALOGUE:
        raise ValueError(f"there is no operation '{name}'; write the names of commands in capitals")
    if (ms is not None) != (fault == "delay"):
        raise ValueError("delay needs milliseconds, and no other fault takes them: delay=300")
    chance = float(percent) / 100 if percent else 1.0
    if chance > 1:
        raise ValueError(f"a fault strikes at most 100% of the calls, and not {percent}%")
    return Rule(text.strip(), fault, int(ms or 0), name or "", chance, int(times) if times else None)


class Faults:
    """The active rules; the seed determines which calls a rule with a percentage strikes."""

    def __init__(self, rules: Sequence[str] = (), seed: int = 0) -> None:
        self.rules = [rule(text) for text in rules]
        self.random = random.Random(seed)

    def strike(self, words: Sequence[str]) -> Rule | None:
        """Find the rule that strikes a command now, and count it; None if there is none."""
        for one in self.rules:
            if one.left == 0 or not one.is_about(words):
                continue
            if one.chance >= 1 or self.random.random() < one.chance:
                one.applied += 1
                if one.left is not None:
                    one.left -= 1
                return one
        return None

    def add(self, text: str) -> None:
        """Add a rule after the others. Raises ValueError with the reason if it is not valid."""
        self.rules.append(rule(text))

    def heal(self) -> None:
        """Remove all rules."""
        self.rules = []

"""The table of commands. Dispatch, COMMAND, and the checks of arguments all read it.

A command is a function of a session and its words. It returns the reply; LATER, when the reply comes later; NOTHING,
when it has already written its replies; or a coroutine that returns the reply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qmodel.serve.resp import Fault, Status
from qmodel.serve.session import Session

COMPATIBLE: Final = "7.2.4"
"""The Redis version that the server reports: clients decide by it which commands they may send."""

Run = Callable[[Session, list[str]], Any]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its arity (negative: a minimum), its flags, the positions of its keys, its summary and function."""

    name: str
    arity: int
    flags: tuple[str, ...]
    keys: tuple[int, int, int]
    summary: str
    run: Run

    def fits(self, words: list[str]) -> bool:
        """Whether the number of words is right."""
        return len(words) == self.arity if self.arity > 0 else len(words) >= -self.arity

    def described(self) -> list[Any]:
        """Give the entry of this command in the reply of COMMAND."""
        flags = [Status(flag) for flag in self.flags]
        return [self.name.lower(), self.arity, flags, *self.keys, [], [], [], []]


COMMANDS: dict[str, Command] = {}
"""All commands, by name in capitals."""


def command(name: str, arity: int, flags: str = "", keys: tuple[int, int, int] = (0, 0, 0)) -> Callable[[Run], Run]:
    """Add a function to the table; the first line of its docstring is the summary."""

    def add(run: Run) -> Run:
        summary = inspect.getdoc(run) or ""
        COMMANDS[name] = Command(name, arity, tuple(flags.split()), keys, summary.partition("\n")[0], run)
        return run

    return add


WORKS: Final = "Jobs are reached by FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ..."


def unknown(name: str) -> Fault:
    """Make the error for a command that is not in the table; it names the call to use instead."""
    shown = name[:64]
    return Fault(
        f"ERR unknown command '{shown}': this is qmodel, a job queue, which keeps jobs and no other data. {WORKS}"
    )


def is_number(word: str) -> bool:
    """Whether a word is a whole number without a sign, in at most 18 ASCII digits."""
    return word.isascii() and word.isdigit() and len(word) <= 18


def usage(name: str) -> Fault:
    """Make the error for a command with the wrong number of words."""
    return Fault(f"ERR wrong number of arguments for '{name.lower()}' command")


def subcommand(words: list[str], *known: str) -> str | Fault:
    """Give the subcommand in capitals if it is known; otherwise an error that lists the known ones."""
    word = words[1].upper()
    if word in known:
        return word
    name = words[0].upper()
    return Fault(f"ERR unknown subcommand '{words[1][:64]}'. This server has {name} {', '.join(known)}.")

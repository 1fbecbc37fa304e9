"""The positions of an operation's arguments on the wire."""

from __future__ import annotations

from qmodel.contract.arguments import ListOf, Operations
from qmodel.contract.operations import Argument, Spec


def _is_positional(argument: Argument) -> bool:
    return argument.required and not isinstance(argument.kind, ListOf | Operations)


def positional(spec: Spec) -> list[Argument]:
    """The arguments at fixed positions on the wire."""
    return [a for a in spec.arguments if _is_positional(a)]


def named(spec: Spec) -> list[Argument]:
    """The arguments that are sent with their names."""
    return [a for a in spec.arguments if not _is_positional(a) and a.name != "request"]

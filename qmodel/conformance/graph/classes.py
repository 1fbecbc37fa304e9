"""Which classes of argument values the letters name: the graph proves its alphabet, and nothing else.

The classes of an argument follow from its kind: each word of a choice, on and off for a switch, none, one and several
for a list, the policies of a dependency, the least value of a number and others. For an optional argument there is one
class more: left out. A class that no letter names stands in LEFT_OUT with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from qmodel.conformance.graph.alphabet import JOBS, WORKERS, explored
from qmodel.contract.arguments import (
    POLICIES,
    Awaited,
    Choice,
    Dependency,
    Edge,
    Flag,
    Kind,
    ListOf,
    Operations,
    Whole,
    awaited_request,
)
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.operations.spec import Argument

LEFT_OUT: Final = {
    "*.request: given": "the memory of requests is one mechanism; the families of resends try each kind of reply",
    "*.token: 0": "the engine treats it as any token that no lease has; letters name 1",
    "cancel.complete: True": "a complete job is deleted as by clean, which letters name; the matrix names it",
    "cancel_many.state: *": "the filter is that of search, which is tried with every state",
    "complete*.depends: *": "edges are read by one rule, which put, depends_on and release try with every policy",
    "release.depends: a request *": "edges are read by one rule, which put and depends_on try with every policy",
    "recur_update.*: 0": "the other value of an exact field, which recur sets",
    "recur_update.fair_*: given": "the other value of an exact field, which recur sets",
    "subscribe.fair_*: given": "the job of a message is put as any job; put tries them",
    "subscribe.retries: *": "the job of a message is put as any job; put tries them",
    "subscribe.tags: several": "the job of a message is put as any job; put tries them",
    "recur*.throttles: *": "a run is put as any job; put tries them",
    "subscribe.after: more": "numbers of messages are sequences, and they differ from state to state",
}
"""The classes that no letter names, as patterns of `operation.argument: class`, and why."""


def expected() -> set[str]:
    """Give every class of every argument of the catalogue."""
    return {
        f"{spec.name}.{argument.name}: {name}"
        for spec in CATALOGUE.values()
        for argument in spec.arguments
        for name in _classes(argument)
    }


def named() -> set[str]:
    """Give the classes that the letters of the families name."""
    found: set[str] = set()
    for family in explored().values():
        for letter in family.letters:
            values = {"job": JOBS[0], "other": JOBS[1], "run": JOBS[0], "worker": WORKERS[0]}
            times = {"token": 1, "other_token": 1, "now": family.start, "last": family.start, "cursor": "c"}
            found |= set(_named(letter.of({**values, **times, "fresh": "f", "held": [(JOBS[0], 1)]})))
    return found


def unexplained() -> set[str]:
    """Give the classes that no letter names and no reason leaves out."""
    return {one for one in expected() - named() if not any(fnmatchcase(one, pattern) for pattern in LEFT_OUT)}


def stale() -> set[str]:
    """Give the patterns of LEFT_OUT that leave nothing out."""
    missing = expected() - named()
    return {pattern for pattern in LEFT_OUT if not any(fnmatchcase(one, pattern) for one in missing)}


def _classes(argument: Argument) -> Iterator[str]:
    if not argument.required and argument.name != "request":
        yield "left out"
    if argument.name == "request":
        yield from ("left out", "given")
    else:
        yield from _of_kind(argument.kind, argument.default if not argument.required else None)


def _of_kind(kind: Kind, default: Any) -> Iterator[str]:
    """Give the classes of a kind; the default of an optional argument needs no class of its own."""
    if isinstance(kind, Choice):
        yield from (word for word in kind.words if word != default)
    elif isinstance(kind, Flag):
        yield from (str(value) for value in (True, False) if value is not default)
    elif isinstance(kind, Dependency):
        yield from (*POLICIES, "with a name", *(f"a request {policy}" for policy in POLICIES))
    elif isinstance(kind, Awaited):
        yield "a request"
    elif isinstance(kind, ListOf):
        yield from (["none"] if kind.least == 0 and default != () else [])
        yield from ("one", "several")
        if isinstance(kind.item, Dependency | Awaited):
            yield from _of_kind(kind.item, None)
    elif isinstance(kind, Operations):
        yield from ("one", "several")
    elif isinstance(kind, Whole) and kind.low == 0 and default != 0:
        yield from ("0", "more")
    else:
        yield "given"


def _named(op: Operation) -> Iterator[str]:
    for argument in op.spec.arguments:
        value = getattr(op, argument.name)
        where = f"{op.spec.name}.{argument.name}: "
        if not argument.required and value == argument.default and type(value) is type(argument.default):
            yield where + "left out"
            continue
        yield from (where + name for name in _of_value(argument.kind, value))
        if isinstance(argument.kind, Operations):
            for inner in value:
                yield from _named(inner)


def _of_value(kind: Kind, value: Any) -> Iterator[str]:
    yield "given"
    if isinstance(kind, Choice | Flag):
        yield str(value)
    elif isinstance(kind, ListOf | Operations):
        yield ("none", "one", "several")[min(len(value), 2)]
        if isinstance(kind, ListOf) and isinstance(kind.item, Dependency | Awaited):
            for one in value:
                yield from _of_value(kind.item, one)
    elif isinstance(kind, Dependency):
        edge = Edge.parse(value)
        yield f"a request {edge.on_failure}" if awaited_request(edge.jid) else edge.on_failure
        if edge.name:
            yield "with a name"
    elif isinstance(kind, Awaited):
        if awaited_request(value):
            yield "a request"
    elif isinstance(kind, Whole):
        yield "more" if value else "0"

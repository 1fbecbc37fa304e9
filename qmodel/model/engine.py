"""The engine: `step(store, now, operation)` gives the operation's reply, or its refusal.

This is the only dispatch; its twin is `lua/wire/register.lua`. All decisions are made in `ops`. Here arguments are
checked, repeated requests of memo operations are answered from memory, and refusals become data.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import groupby
from typing import Any

from qmodel.contract.arguments import NAMES, TIME_END, Operations
from qmodel.contract.operations import CATALOGUE, Operation, Spec
from qmodel.contract.refusals import Refusal, Refused
from qmodel.model.rules import propagation
from qmodel.model.state import budget, idempotency, journal
from qmodel.model.state.store import Store

Verb = Callable[[Store, int, Any], Any]


def _verb(spec: Spec) -> Verb:
    """Find the function that executes an operation: the one of its name in the module of its section.

    A name that the module needs for a noun of the state ends in an underscore: `throttles_`.
    """
    section = import_module(f"qmodel.model.ops.{spec.section}")
    verb: Verb = getattr(section, f"{spec.name}_", None) or getattr(section, spec.name)
    return verb


VERBS = {name: _verb(spec) for name, spec in CATALOGUE.items()}


def fault(op: Operation) -> str | None:
    """The first argument of an operation that its kind does not accept, or None."""
    return _CHECKS[type(op)](op)


def _check(spec: Spec) -> Callable[[Any], str | None]:
    """Make the function that finds the fault of operations of one class. A default needs no check.

    It is written out argument by argument and compiled, as dataclasses do it: a loop over the arguments that calls
    `accepts` takes three times as long, a fifth of a whole step.
    """
    lines = ["def check(op):"]
    known: dict[str, Any] = {"fault_of": fault, "NAMES": NAMES}
    for optional, several in groupby(spec.arguments, lambda a: a.optional):
        if optional:  # most calls give none of them
            lines.append(" if op.named:")
        for a in several:
            known |= {f"accepts_{a.name}": a.kind.accepts, f"default_{a.name}": a.default}
            fine = "" if a.required else f"value is default_{a.name} or "
            fine += f"{a.kind.plain} or accepts_{a.name}(value)"
            found = [f"value = op.{a.name}", f"if not ({fine}):", f" return {a.name!r}"]
            if type(a.kind) is Operations:
                found += ["for one in value:", " if (inner := fault_of(one)) is not None:", "  return inner"]
            lines += [(" " * (1 + optional)) + line for line in found]
    exec("\n".join([*lines, " return None"]), known)
    check: Callable[[Any], str | None] = known["check"]
    return check


_CHECKS = {spec.cls: _check(spec) for spec in CATALOGUE.values()}
_VERBS = {
    spec.cls: (VERBS[name], spec.resend == "memo", spec.cascades, spec.reads, _CHECKS[spec.cls])
    for name, spec in CATALOGUE.items()
}


def step(store: Store, now: int, op: Operation) -> Any:
    """Execute one operation at a moment (milliseconds since the epoch); give its reply, or a Refusal."""
    if type(now) is not int or not 0 <= now < TIME_END:
        return Refusal("BAD_ARGUMENT", (op.spec.name, "now"))
    verb, memo, cascades, reads, check = _VERBS[type(op)]
    bad = check(op)
    if bad is not None:
        return Refusal("BAD_ARGUMENT", (op.spec.name, bad))
    journals = store.journals
    budget.begin(store)
    try:
        reply = _remembered(store, now, op, verb) if memo and op.request else verb(store, now, op)  # type: ignore[attr-defined]
    except Refused as refused:
        reply = refused.refusal
    else:
        if store.cascade and cascades:
            propagation.propagate(store, now)
    if (journals or store.journals) and not reads:
        journal.record(store, now, op, reply)
    return reply


def _remembered(store: Store, now: int, op: Any, verb: Verb) -> Any:
    """Answer a repeated request from memory, or execute a new one and remember its reply."""
    request = f"{op.spec.name} {op.request}"
    reply = idempotency.recall(store, request)
    if reply is None:
        reply = verb(store, now, op)
        idempotency.remember(store, request, reply)
    return reply

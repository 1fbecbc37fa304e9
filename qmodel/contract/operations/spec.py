"""How an operation is described: its arguments, its reply, its refusals, and its events."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform, get_type_hints

from qmodel.contract.arguments import Kind

Resend = Literal["read", "job", "grant", "lease", "memo", "same"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name, its kind, and its default if it is optional."""

    name: str
    kind: Kind
    required: bool
    default: Any

    @property
    def optional(self) -> bool:
        """Whether callers may leave it out. The request does not count: clients send one with every call."""
        return not self.required and self.name != "request"


@dataclass(frozen=True, slots=True)
class Spec:
    """Everything that the catalogue knows about one operation.

    `section` is the name of its module here and of the modules of its two implementations.
    """

    name: str
    section: str
    cls: type[Operation]
    summary: str
    arguments: tuple[Argument, ...]
    reply: str
    resend: Resend
    refusals: tuple[str, ...]
    events: tuple[str, ...]
    finishes: bool

    @property
    def cascades(self) -> bool:
        """Whether the operation propagates failures to dependents at its end."""
        return set(CASCADE.split()) <= set(self.events)

    @property
    def reads(self) -> bool:
        """Whether the operation changes nothing."""
        return self.resend == "read"


class Operation:
    """Base of all operations.

    `named` is true if any optional argument other than the request was given. Most calls give none. So the checks and
    the verbs ask this one question before they look at optional arguments.
    """

    __slots__ = ("named",)
    spec: ClassVar[Spec]
    named: bool


BURIED = " failed dead_lettered put retired"
CASCADE = BURIED + " canceled unblocked throttled"
"""The events of an operation that may fail a job, or that propagates an earlier failure."""

CATALOGUE: dict[str, Spec] = {}
"""Every operation by its name on the wire, section by section."""

T = TypeVar("T", bound=Operation)


def _arguments(cls: type[Operation]) -> tuple[Argument, ...]:
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in fields(cls):  # type: ignore[arg-type]
        hint = hints[field.name]
        if not hasattr(hint, "__metadata__"):  # `Kind | None`
            hint = next(part for part in hint.__args__ if hasattr(part, "__metadata__"))
        required = field.default is MISSING
        found.append(Argument(field.name, hint.__metadata__[0], required, None if required else field.default))
    return tuple(found)


def _constructor(arguments: tuple[Argument, ...], annotations: dict[str, Any]) -> Callable[..., None]:
    """Write the constructor of a class of operations: what dataclasses would write, plus the flag `named`."""
    taken = [a.name if a.required else f"{a.name}=default_{a.name}" for a in arguments]
    kept = [f" self.{a.name} = {a.name}" for a in arguments]
    given = [f"{a.name} is not {'None' if a.default is None else f'default_{a.name}'}" for a in arguments if a.optional]
    known: dict[str, Any] = {f"default_{a.name}": a.default for a in arguments}
    lines = [f"def __init__({', '.join(['self', *taken])}):", *kept, " self.named = False"]
    if given:
        lines += [f" if {' or '.join(given)}:", "  self.named = True"]
    exec("\n".join(lines), known)
    made: Callable[..., None] = known["__init__"]
    made.__annotations__ = annotations
    return made


@dataclass_transform(frozen_default=True, kw_only_default=False)
def operation(
    reply: str, resend: Resend, refusals: str = "", events: str = "", finishes: bool = False
) -> Callable[[type[T]], type[T]]:
    """Enter a class in the catalogue.

    `reply` names a shape of qmodel.wire.codec. `refusals` and `events` are the codes and kinds that can occur besides
    BAD_ARGUMENT. `finishes` marks an operation that a server out of memory must still accept, so that work can drain.
    """

    def enter(cls: type[T]) -> type[T]:
        made: type[T] = dataclass(slots=True, eq=True, unsafe_hash=True)(cls)
        arguments = _arguments(made)
        made.__init__ = _constructor(arguments, made.__init__.__annotations__)  # type: ignore[method-assign]
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        summary = (cls.__doc__ or "").partition("\n")[0]
        made.spec = CATALOGUE[name] = Spec(
            name,
            cls.__module__.rpartition(".")[2],
            made,
            summary,
            arguments,
            reply,
            resend,
            tuple(refusals.split()),
            tuple(events.split()),
            finishes,
        )
        return made

    return enter


DEPENDENCY = "DEPENDENCY_NOT_FOUND DEPENDENCY_CYCLE DEPENDENCY_LIMIT"
HELD = "JOB_NOT_FOUND LOCK_LOST"
ENDS = " skipped unrecurred unthrottled request_done"
"""The other events that the end of a job may cause."""
FAST = " request_canceled"
"""The event of an operation that may fail a sub-request of a request that ends with its first failure."""
FOLLOWED = CASCADE + FAST + " skipped unrecurred request_done"
"""The events of an operation that ends a request, for which jobs may wait."""
DUE = FAST + " request_closed revoked"
"""The events of an operation that ends due requests."""
REPLAY = "JOB_NOT_FOUND NOT_A_DEAD_LETTER WRONG_STATE HAS_DEPENDENTS DEPENDENCY_LIMIT"
RUNS = "fired renumbered missed" + ENDS
TAKEN = "popped promoted lock_lost delayed unpaused" + CASCADE + " " + RUNS + DUE
PUTS = DEPENDENCY + " DUPLICATE_JID OVER_CAPACITY OVER_BUDGET JOB_EXISTS REQUEST_STATE"

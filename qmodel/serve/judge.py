"""The judge: what a binding does wrong that can be told from what it sends.

It looks at each call and its outcome, and at the faults that met it. A finding names the requirement that is broken
(docs/requirements.md), and shows the first call that broke it. What it cannot see, it does not judge: a binding may
pass here and still read replies wrongly; for that there is the kit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qmodel.contract.operations import CATALOGUE, Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.model.state.history import stages
from qmodel.serve.faults import operation_of
from qmodel.serve.namespaces import Space

FINDINGS: Final = {
    "UNKNOWN-FUNCTION": "It calls a function that the library does not have.",
    "UNKNOWN-COMMAND": "It sends a command that no queue needs; on Redis that would touch keys of others.",
    "PROTOCOL": "It sends what is not RESP.",
    "CALL-1": "It sends arguments that are not what they may be.",
    "SEND-1": "It sends again, as a new operation, what was perhaps executed: the request id is another one.",
    "SEND-2": "It gives no request id where one makes sending again safe.",
    "SEND-3": "It gives one request id to different operations.",
    "LEASE-2": "It names a token that nobody was ever given for that job.",
    "LEASE-4": "It goes on working under a lease after it was told LOCK_LOST.",
    "LOAD-1": "It does not load the library, or the script, when the server says that it is gone.",
    "RETRY-1": "It does not send again what the server could not execute, or what it got no answer to.",
}
"""What can be found, and what it means."""

_RESENT: Final = frozenset(("lost", "cut", "drop", "busy", "loading", "readonly", "not-found", "noscript"))
KEPT: Final = 100_000
"""So many request ids, leases and the like are remembered."""

KEPT_STAGES: Final = 4
"""A job's history may be cut to this: a longer one may have lost a claim."""

NOTES: Final = frozenset(("RETRY-1",))
"""What an author may have wanted so: it is told, and is no fault."""

Key = tuple[str, ...]
Awaited = tuple[int, str, str]
"""What met a fault: its connection, how it reads, its request id."""


@dataclass(slots=True)
class Finding:
    """What was found: how often, and the first call that showed it, with its connection."""

    code: str
    first: str
    connection: int
    times: int = 1


class Judge:
    """Watches calls, and keeps what it finds."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, str], Finding] = {}
        self.calls = 0
        self.operations: dict[str, int] = {}
        self.resends = self.struck = 0
        self._requests: dict[str, tuple[str, ...]] = {}
        self._lost: dict[tuple[int, str, int], tuple[str, ...]] = {}
        self._awaited: dict[Key, Awaited] = {}
        self._unloaded: tuple[int, str, str] | None = None

    # ---- what is seen

    def call(
        self, connection: int, space: Space, spec: Spec, words: Sequence[str], op: Operation | None, was: Any
    ) -> None:
        """Look at a call, whose request and arguments are `words`, and at its outcome."""
        request, rest = (words[0] if words else ""), (spec.name, space.prefix, *words[1:])
        awaited = self._awaited.pop(rest, None)
        self.resends += awaited is not None
        told = f"{spec.name} {' '.join(map(_short, words[1:]))}".rstrip()
        self.calls += 1
        self.operations[spec.name] = self.operations.get(spec.name, 0) + 1
        self._unloaded = None  # the call came through
        if type(was) is Refusal and was.code == "BAD_ARGUMENT":
            self._find(
                "CALL-1", f"{was.facts[0]}.{was.facts[1]}", f"{told}: the server refuses {was.facts[1]}", connection
            )
        if spec.resend in ("job", "grant", "memo"):
            self._look_at_request(connection, spec, request, rest, told, awaited)
        if op is not None:
            self._look_at_leases(connection, space, op, was, told, (spec.name, *words))

    def _look_at_request(
        self, connection: int, spec: Spec, request: str, rest: Key, told: str, awaited: Awaited | None
    ) -> None:
        if not request:
            self._find("SEND-2", spec.name, told, connection)
        elif awaited is not None and awaited[2] != request:
            self._find("SEND-1", spec.name, f"{told}: first as {awaited[2]!r}, then as {request!r}", connection)
        elif self._requests.get(request, rest) != rest:
            self._find("SEND-3", spec.name, f"{told}: {request!r} was {self._requests[request][0]}", connection)
        if request and len(self._requests) < KEPT:
            self._requests[request] = rest

    def _look_at_leases(self, connection: int, space: Space, op: Operation, was: Any, told: str, call: Key) -> None:
        for jid, token in _leases(op):
            if type(was) is not Refusal or was.code != "LOCK_LOST" or was.facts[0] != jid:
                continue
            job = space.store.jobs.get(jid)
            kept = list(stages(job)) if job is not None else []
            granted = any(what == "popped" and facts[1] == token for what, _, facts in kept)
            if job is not None and not granted and len(kept) < KEPT_STAGES:
                self._find("LEASE-2", op.spec.name, told, connection)
            before = self._lost.setdefault((connection, jid, token), call)
            if before != call:
                self._find("LEASE-4", op.spec.name, f"{told}: after {before[0]} was refused", connection)

    def strike(self, connection: int, words: Sequence[str], fault: str) -> None:
        """Note that a fault met a command; `words` are all of it."""
        self.struck += 1
        name, at = operation_of(words), 4 if words[0].upper().startswith("FCALL") else 5
        if name not in CATALOGUE or fault not in _RESENT:
            return
        request = words[at + 1] if len(words) > at + 1 else ""
        told = f"{name} {' '.join(map(_short, words[at + 2 :]))}".rstrip()
        if fault in ("not-found", "noscript"):
            self._unloaded = (connection, fault, told)
        key = (name, words[3], *words[at + 2 :])
        if len(self._awaited) < KEPT:
            self._awaited[key] = (connection, told, request)

    def unknown(self, connection: int, words: Sequence[str]) -> None:
        """Note a function, or a command, that is not there."""
        name = words[1] if words[0].upper().startswith("FCALL") and len(words) > 1 else words[0].upper()
        code = "UNKNOWN-COMMAND" if name == words[0].upper() else "UNKNOWN-FUNCTION"
        self._find(code, name, _short(name), connection)

    def malformed(self, connection: int, error: str) -> None:
        """Note that what came was not RESP."""
        self._find("PROTOCOL", error, error, connection)

    def _find(self, code: str, what: str, first: str, connection: int) -> None:
        found = self.findings.get((code, what))
        if found is None:
            self.findings[code, what] = Finding(code, first[:300], connection)
        else:
            found.times += 1

    # ---- the verdict

    def final(self) -> list[Finding]:
        """All that was found, by what it is; what was awaited and never came counts from now on."""
        missing: dict[tuple[str, str], Finding] = {}
        for key, (connection, told, _) in self._awaited.items():
            found = missing.setdefault(("RETRY-1", key[0]), Finding("RETRY-1", told[:300], connection, 0))
            found.times += 1
        if self._unloaded is not None:
            connection, fault, told = self._unloaded
            missing["LOAD-1", fault] = Finding("LOAD-1", f"{told}: {fault}", connection)
        order = list(FINDINGS)
        return sorted((self.findings | missing).values(), key=lambda one: (order.index(one.code), one.first))

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found but notes."""
        return all(one.code in NOTES for one in self.final())

    def lines(self) -> Iterator[str]:
        """The verdict, for a person."""
        found = self.final()
        yield f"{self.calls} calls of {len(self.operations)} operations."
        if self.struck:
            yield f"{self.struck} more met a fault; {self.resends} of those were sent again."
        if not self.calls:
            yield "Nothing was called, so there is nothing to judge."
        elif not found:
            yield "Nothing wrong was found in what was sent."
        for one in found:
            times = "once" if one.times == 1 else f"{one.times} times"
            yield f"{'note: ' if one.code in NOTES else ''}{one.code}, {times}: {FINDINGS[one.code]}"
            yield f"    connection {one.connection}: {one.first}"


def _leases(op: Operation) -> list[tuple[str, int]]:
    """The leases that an operation names."""
    if hasattr(op, "token"):
        return [(op.jid, op.token)]  # type: ignore[attr-defined]
    inner = getattr(op, "jobs", ())
    return [(one.jid, one.token) for one in inner if hasattr(one, "token")]


def _short(word: str) -> str:
    shown = word if word and word.isprintable() and " " not in word else repr(word)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."

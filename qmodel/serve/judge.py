"""The judge: find mistakes of a binding in the calls that it sends.

It examines each call, its outcome, and the fault that struck it. A finding names the broken requirement
(docs/requirements.md), and shows the first call that broke it. The judge sees only what is sent: a binding may pass
here and still read replies wrongly. The kit tests that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qmodel.contract.operations import Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.model.state.history import stages
from qmodel.present.numbers import counted
from qmodel.serve.faults import operations_of
from qmodel.serve.namespaces import Space

FINDINGS: Final = {
    "UNKNOWN-FUNCTION": "It calls a function that the library does not have.",
    "UNKNOWN-COMMAND": "It sends a command that no queue needs; on Redis the command would touch other keys.",
    "PROTOCOL": "It sends bytes that are not RESP.",
    "CALL-1": "It sends arguments that are not valid.",
    "SEND-1": "It resends an operation that may have been executed with another request id.",
    "SEND-2": "It gives no request id to an operation that needs one to be resent safely.",
    "SEND-3": "It gives the same request id to different operations.",
    "LEASE-2": "It sends a token that was never issued for that job.",
    "LEASE-4": "It keeps using a lease after it received LOCK_LOST.",
    "LOAD-1": "It does not load the library, or the script, after the server replied that it is missing.",
    "RETRY-1": "It does not resend an operation that was not executed, or that got no reply.",
}
"""The codes of findings, and what each means."""

_RESENT: Final = frozenset(("lost", "cut", "drop", "busy", "loading", "readonly", "not-found", "noscript"))
KEPT: Final = 100_000
"""The maximum number of remembered request ids, of leases that were refused, and of calls that should be sent again."""

MOST_FINDINGS: Final = 1000
"""The maximum number of different findings; the calls that show others are counted."""

KEPT_STAGES: Final = 4
"""The length to which a job's history may be cut: a history of this length may lack an earlier claim."""

NOTES: Final = frozenset(("RETRY-1",))
"""Findings that may be intended: they are shown as notes, and do not fail the verdict."""

Key = tuple[str, int]
"""A call: its function, and the hash of its prefix and arguments, which may be large."""

Awaited = tuple[int, str, str]
"""A call that was struck by a fault: its connection, its text, its request id."""


def _key(name: str, prefix: str, arguments: Iterable[str]) -> Key:
    return name, hash((prefix, *arguments))


@dataclass(slots=True)
class Finding:
    """A finding: its code, the first call that shows it, that call's connection, and how often it occurred."""

    code: str
    first: str
    connection: int
    times: int = 1


class Judge:
    """Examines calls, and collects findings."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, str], Finding] = {}
        self.calls = 0
        self.operations: dict[str, int] = {}
        self.resends = self.struck = 0
        self.unshown = 0
        self._requests: dict[str, Key] = {}
        self._lost: dict[tuple[int, int, str, str, int], Key] = {}
        self._awaited: dict[Key, Awaited] = {}
        self._unloaded: tuple[int, str, str] | None = None

    # ---- observations

    def call(
        self, connection: int, space: Space, spec: Spec, words: Sequence[str], op: Operation | None, was: Any
    ) -> None:
        """Examine a call and its outcome; `words` are its request id and its arguments."""
        request, rest = (words[0] if words else ""), _key(spec.name, space.prefix, words[1:])
        awaited = self._awaited.pop(rest, None)
        self.resends += awaited is not None
        told = f"{spec.name} {' '.join(map(_short, words[1:]))}".rstrip()
        self.calls += 1
        self.operations[spec.name] = self.operations.get(spec.name, 0) + 1
        self._unloaded = None  # the call was executed, so the library is loaded
        if type(was) is Refusal and was.code == "BAD_ARGUMENT":
            self._find(
                "CALL-1", f"{was.facts[0]}.{was.facts[1]}", f"{told}: the server refuses {was.facts[1]}", connection
            )
        if spec.resend in ("job", "grant", "memo"):
            self._examine_request(connection, spec, request, rest, told, awaited)
        if op is not None:
            self._examine_leases(connection, space, op, was, told, _key(spec.name, space.prefix, words))

    def _examine_request(
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

    def _examine_leases(self, connection: int, space: Space, op: Operation, was: Any, told: str, call: Key) -> None:
        for jid, token in _leases(op):
            if type(was) is not Refusal or was.code != "LOCK_LOST" or was.facts[0] != jid:
                continue
            job = space.store.jobs.get(jid)
            kept = list(stages(job)) if job is not None else []
            granted = any(what == "popped" and facts[1] == token for what, _, facts in kept)
            if job is not None and not granted and len(kept) < KEPT_STAGES:
                self._find("LEASE-2", op.spec.name, told, connection)
            lease = (connection, space.db, space.prefix, jid, token)
            before = self._lost.get(lease, call)
            if len(self._lost) < KEPT:
                self._lost.setdefault(lease, call)
            if before != call:
                self._find("LEASE-4", op.spec.name, f"{told}: after {before[0]} was refused", connection)

    def strike(self, connection: int, words: Sequence[str], fault: str) -> None:
        """Record that a fault struck a command; `words` are the whole command."""
        self.struck += 1
        if fault not in _RESENT:
            return
        prefix = words[3] if len(words) > 3 else ""
        for name, given in operations_of(words):
            told = f"{name} {' '.join(map(_short, given[2:]))}".rstrip()
            if fault in ("not-found", "noscript"):
                self._unloaded = (connection, fault, told)
            if len(self._awaited) < KEPT:
                self._awaited[_key(name, prefix, given[2:])] = (connection, told, given[1] if len(given) > 1 else "")

    def unknown(self, connection: int, words: Sequence[str]) -> None:
        """Record a call of an unknown function, or an unknown command."""
        name = words[1] if words[0].upper().startswith("FCALL") and len(words) > 1 else words[0].upper()
        code = "UNKNOWN-COMMAND" if name == words[0].upper() else "UNKNOWN-FUNCTION"
        self._find(code, name, _short(name), connection)

    def malformed(self, connection: int, error: str) -> None:
        """Record that the input was not RESP."""
        self._find("PROTOCOL", error, error, connection)

    def _find(self, code: str, what: str, first: str, connection: int) -> None:
        key = (code, what[:300])
        if key in self.findings:
            self.findings[key].times += 1
        elif len(self.findings) < MOST_FINDINGS:
            self.findings[key] = Finding(code, first[:300], connection)
        else:
            self.unshown += 1

    # ---- the verdict

    def final(self) -> list[Finding]:
        """Give all findings, in the order of their codes, including calls that were not resent until now."""
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
        """Whether there are no findings except notes."""
        return all(one.code in NOTES for one in self.final())

    def lines(self) -> Iterator[str]:
        """Write the verdict as text."""
        found = self.final()
        yield f"{counted(self.calls, 'call')} of {counted(len(self.operations), 'operation')}."
        if self.struck:
            yield f"{self.struck} more were struck by a fault; {self.resends} of them were sent again."
        if not self.calls:
            yield "There were no calls to judge."
        elif not found:
            yield "No mistakes were found in the calls."
        for one in found:
            times = "once" if one.times == 1 else f"{one.times} times"
            yield f"{'note: ' if one.code in NOTES else ''}{one.code}, {times}: {FINDINGS[one.code]}"
            yield f"    connection {one.connection}: {one.first}"
        if self.unshown:
            yield f"{counted(self.unshown, 'more call')} showed other mistakes, which are not listed."


def _leases(op: Operation) -> list[tuple[str, int]]:
    """List the leases that an operation names, as job id and token."""
    if hasattr(op, "token"):
        return [(op.jid, op.token)]  # type: ignore[attr-defined]
    inner = getattr(op, "jobs", ())
    return [(one.jid, one.token) for one in inner if hasattr(one, "token")]


def _short(word: str) -> str:
    shown = word if word and word.isprintable() and " " not in word else repr(word)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."

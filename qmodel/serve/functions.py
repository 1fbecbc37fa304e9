"""Execute the functions of the library on the model: one function for each operation of the catalogue.

FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ...
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol

from qmodel import runtime
from qmodel.backends.bundle import CALLS, LIBRARY, function_name
from qmodel.contract.operations import CATALOGUE, BeginEpoch, Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.dialects import qless
from qmodel.dialects.qless import Answer
from qmodel.model.state import epochs
from qmodel.serve.namespaces import WAKE, Space, Spaces, Waiter
from qmodel.serve.replies import Raw, reply
from qmodel.wire import parse
from qmodel.wire.parse import QUICK, STRICT, Bad

Clock = Callable[[], int]

_SIZE: Final = re.compile(r"[2-9]|[1-9][0-9]{1,8}")

FUNCTIONS: Final = {function_name(name): spec for name, spec in CATALOGUE.items()}
"""The operation of each function of the library."""

DIGEST: Final = f"{LIBRARY}_digest"
DENIED: Final = f"{LIBRARY}_denied"
QLESS: Final = f"{LIBRARY}_qless"
QLESS_DOCUMENT: Final = f"{LIBRARY}_qless_document"
OTHERS: Final = (QLESS, QLESS_DOCUMENT, DIGEST, DENIED, CALLS)
"""The functions of the library that are not operations."""

Dialect = Literal["qless", "document"]


Watch = Callable[[Space, Spec, Sequence[str], Operation | None, int, Any], None]
"""Observes each call: its namespace, its request id and arguments, the operation if it was valid, and the outcome."""


class Log(Protocol):
    """Keeps each change, in order, before replies are sent."""

    def operation(self, space: Space, name: str, now: int, words: Sequence[str]) -> None:
        """Add an executed operation and its time; `words` are its request id and its arguments."""

    def wake(self, space: Space, queue: str) -> None:
        """Add that a wake-up of a queue was consumed."""

    def push(self, space: Space, queue: str) -> None:
        """Add that a wake-up of a queue was given back."""

    def dialect(self, space: Space, name: str, words: Sequence[str]) -> None:
        """Add an executed call of a dialect; it may have been several operations."""

    def cleared(self, db: int | None, prefix: str | None) -> None:
        """Add that the namespaces of a database, or of all, were emptied; `prefix` limits it to matching prefixes."""


def system_clock() -> int:
    """Read the system's clock, in milliseconds since the epoch."""
    return runtime.time_ns() // 1_000_000


def read(spec: Spec, words: Sequence[str], at: int, clock: Clock) -> tuple[Operation, int] | Refusal:
    """Parse the `now request argument ...` at words[at:]; give the operation and its time, or the refusal."""
    now = parse.moment(words[at]) if at < len(words) and words[at] else clock()
    request = words[at + 1] if at + 1 < len(words) else ""
    if now is None:
        return Refusal("BAD_ARGUMENT", (spec.name, "now"))
    try:
        return QUICK[spec.name].operation(words, at + 2, request), now
    except Bad:
        refused = parse.refusal(spec, words, at)
        return refused or (STRICT[spec.name].operation(words, at + 2, request), now)


def _answer(space: Space, dialect: str, words: Sequence[str]) -> Answer:
    """Execute a call of a dialect on a namespace."""
    if dialect == "qless":
        return qless.call(space.store, words)
    now, document, operation, *given = words
    return qless.call_document(space.store, document, operation, given, int(now))


def _replayed(name: str, words: Sequence[Any]) -> Operation:
    """Read the operation of an entry of the journal: its time, its request id and its arguments. Raises ValueError."""
    try:
        return parse.operation(name, words)
    except Bad as bad:
        raise ValueError(f"this version refuses its argument {bad}") from None


def calls_of(words: Sequence[str], at: int) -> list[tuple[Spec, list[str]]] | None:
    """Parse the `operation count string ...` at words[at:] of several operations; None if they are none that write."""
    found = []
    while at < len(words):
        spec, size = CATALOGUE.get(words[at]), words[at + 1] if at + 1 < len(words) else ""
        if spec is None or spec.reads or not _SIZE.fullmatch(size) or at + 2 + int(size) > len(words):
            return None
        found.append((spec, [*words[at + 2 : at + 2 + int(size)]]))
        at += 2 + int(size)
    return found or None


class ModelExecutor:
    """The model in this process, with a namespace for each database and prefix."""

    def __init__(self, clock: Clock = system_clock, log: Log | None = None) -> None:
        self.clock = clock
        self.log = log
        self.watch: Watch | None = None
        self._digits = runtime.randbelow(epochs.DIGITS)
        self.spaces = Spaces(self._log_wake)

    def call(self, db: int, spec: Spec, prefix: str, words: Sequence[str], at: int) -> Raw:
        """Execute the call whose `now request argument ...` stand at words[at:]; give the reply for the wire."""
        found = read(spec, words, at, self.clock)
        if isinstance(found, Refusal):
            if self.watch is not None:
                self.watch(self.spaces.look(db, prefix), spec, words[at + 1 :], None, 0, found)
            return reply(spec.reply, found)
        op, now = found
        reads = spec.resend == "read"
        space = self.spaces.look(db, prefix) if reads else self.spaces.of(db, prefix)
        if not (reads or space.is_begun or (at < len(words) and words[at])) and not parse.refusal(spec, words, at):
            if spec.name == "begin_epoch":
                space.is_begun = True
            else:
                self.begin_epoch(space)
        recorded = space.store.journaled
        outcome = space.execute(op, now)
        if type(outcome) is Refusal and outcome.code == "BAD_ARGUMENT":
            outcome = parse.refusal(spec, words, at) or outcome
        if self.watch is not None:
            self.watch(space, spec, words[at + 1 :], op, now, outcome)
        if type(outcome) is Refusal and space.store.journaled == recorded:
            return reply(spec.reply, outcome)
        raw = reply(spec.reply, outcome, space.store)
        if not reads:
            if self.log is not None:
                self.log.operation(space, spec.name, now, words[at + 1 :] or [""])
            space.settle()
        return raw

    def begin_epochs(self) -> None:
        """Begin an epoch of each namespace: this process may have lost the end of the log of an earlier one."""
        for space in self.spaces:
            self.begin_epoch(space)

    def begin_epoch(self, space: Space) -> None:
        """Begin an epoch of a namespace, before it is changed for the first time by this process."""
        now = self.clock()
        epoch = epochs.next_(space.store, now, self._digits, self.spaces.cleared_epoch)
        space.execute(BeginEpoch(epoch), now)
        space.is_begun = True
        if self.log is not None:
            self.log.operation(space, BeginEpoch.spec.name, now, ["", str(epoch)])

    def dialect(self, db: int, prefix: str, dialect: Dialect, words: Sequence[str], simulated: bool = False) -> Answer:
        """Execute a call of a dialect, as one entry of the journal: one of qless, or one of an early document, with the
        document and the operation before its arguments. Raises QlessError.
        """
        space = self.spaces.of(db, prefix)
        if not (space.is_begun or simulated):
            self.begin_epoch(space)
        if dialect == "document":  # a call without a time of its own has that of the server
            words = [str(self.clock()), *words]
        answer, refused = None, None
        try:
            answer = _answer(space, dialect, words)
        except qless.QlessError as error:  # some of its operations may have been executed: the journal needs it too
            refused = error
        if self.log is not None:
            self.log.dialect(space, dialect, words)
        space.settle()
        if answer is None:
            raise refused or AssertionError
        return answer

    def wait(self, db: int, keys: Sequence[str], notify: Callable[[str], object]) -> Waiter | None:
        """Wait for wake-ups on the lists with these keys; None if one was there at once. `notify` gets its key."""
        waiter = Waiter(notify)
        for key in dict.fromkeys(keys):
            for space, queue in self.spaces.waking(db, key):
                if space.enter(waiter, queue, key):
                    return None
        return waiter

    def take_wake(self, db: int, keys: Sequence[str]) -> str | None:
        """Consume a wake-up that already exists; give the key of its list."""
        for key in keys:
            if any(space.take_wake(queue) for space, queue in self.spaces.waking(db, key)):
                return key
        return None

    def give_back_wake(self, db: int, key: str) -> int:
        """Put back a wake-up that a worker cannot use, for another one; say how many there are."""
        count = 0
        for space, queue in self.spaces.queues_of(db, key, WAKE):
            count += space.push_wake(queue)
            if self.log is not None:
                self.log.push(space, queue)
            space.settle()
        return count

    def clear(self, db: int | None = None, prefix: str | None = None) -> None:
        """Empty the namespaces of a database, or of all; `prefix` limits it to matching prefixes."""
        self.spaces.clear(db, prefix)
        if self.log is not None:
            self.log.cleared(db, prefix)

    def replay(self, entry: list[Any]) -> int:
        """Apply an entry of the journal again; give the sequence number of the last event after it."""
        what, db, prefix = entry[:3]
        if what == "clear":
            self.spaces.clear(db, prefix)
            return 0
        space = self.spaces.of(db, prefix)
        if what == "wake":
            space.take_wake(entry[4])
        elif what == "push":
            space.push_wake(entry[4])
        elif what == "operation":
            name, *words = entry[4:]
            space.execute(_replayed(name, words), words[0])
        elif what == "dialect" and entry[4] in ("qless", "document"):
            with contextlib.suppress(qless.QlessError):
                _answer(space, entry[4], entry[5:])
        else:
            raise ValueError(f"it holds '{what}', which this version does not know")
        return space.store.seq

    def _log_wake(self, space: Space, queue: str) -> None:
        if self.log is not None:
            self.log.wake(space, queue)

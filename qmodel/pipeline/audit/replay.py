"""Audit: check that production did what the model says.

The journal has every operation that may change something, with its moment and its outcome. The audit executes each of
them again on the model. The outcome must be the same, and so must the sequence of the last event. So every recorded
answer is either proved, or reported with the operations before it. Reads are not in the journal, so their answers are
not checked.

An audit begins with a state: an empty namespace, or a snapshot, which knows the number of its last entry. It needs all
entries after that, and proves by their numbers that none is missing. It ends with a state that the next audit can begin
with. So its memory grows with the content of the namespace, not with its age.

After a difference the model continues with its own outcome. It takes over the sequence of production, so that one
missing event is not reported as a difference of all later entries.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from qmodel.contract.operations import BeginEpoch, Get, Operation
from qmodel.contract.replies import Job
from qmodel.errors import QmodelError
from qmodel.model import restore, snapshot
from qmodel.model.engine import step
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.records import Told
from qmodel.model.state.store import Store
from qmodel.pipeline.journal import compare
from qmodel.pipeline.journal.pages import Row
from qmodel.wire import as_json

AROUND = 20
"""The number of earlier operations that are shown with a difference."""


class AuditError(QmodelError):
    """Raised when the audit cannot continue. The message says why, and what to do."""


class AuditForked(AuditError):
    """Raised when an entry is of another history than those before it. `common` is the newest entry of both."""

    def __init__(self, number: int, epoch: int, current: int, common: int) -> None:
        super().__init__(number, epoch, current, common)
        self.number, self.epoch, self.current, self.common = number, epoch, current, common

    def __str__(self) -> str:
        says = f"The journal forked: entry {self.number} of epoch {self.epoch} was audited, and the server lost it"
        if self.common >= self.number:
            return (
                f"{says}. Its epoch is {self.current} now, and it no longer keeps the entries before. Begin anew with "
                f"a snapshot of the server."
            )
        return (
            f"{says}: the entries {self.common + 1} to {self.number} exist twice, in epoch {self.epoch} as audited, "
            f"and in the server's history, whose epoch is {self.current} now. Audit the server's from a state after "
            f"entry {self.common} or before, or from a new snapshot."
        )


class Difference(NamedTuple):
    """An entry with another outcome in production than in the model."""

    number: int
    call: str
    outcome: str
    expected: str
    seq: int  # of the last event after it
    expected_seq: int
    before: tuple[str, ...]  # the entries before, as `call outcome`
    jobs: tuple[str, ...]  # the jobs it names, after it, in the model: JSON, as in a reply

    def __str__(self) -> str:
        lines = [f"Entry {self.number} of the journal:", *(f"     {line}" for line in self.before)]
        lines += [f"  -> {self.call}", f"     production: {self.outcome}, last event {self.seq}"]
        lines += [f"     the model:  {self.expected}, last event {self.expected_seq}"]
        return "\n".join([*lines, *(f"     the model's job: {job}" for job in self.jobs)])


class Counted(deque[Told]):
    """The events of an audited store: only how many there are. No step reads them. To free old events would take a
    twentieth of the time of an audit, because they have left the processor's caches.

    >>> events = Counted([], 2)
    >>> events.append((5, "paused", "emails", ""))
    >>> len(events), list(events)
    (1, [])
    """

    __slots__ = ("_count", "_most")

    def __init__(self, before: Sized, most: int | None) -> None:
        super().__init__((), most)
        self._most = most
        self._count = len(before) if most is None else min(len(before), most)

    def append(self, told: Told) -> None:
        if self._count != self._most:
            self._count += 1

    def __len__(self) -> int:
        return self._count


class Audit:
    """An audit that proceeds entry by entry."""

    def __init__(self, state: Snapshot | None = None, around: int = AROUND) -> None:
        """Begin with a snapshot, or with an empty namespace."""
        self.store = Store() if state is None else restore.store(state)
        self.store.events = Counted(self.store.events, self.store.events.maxlen)
        self.number = self._first = self.store.journaled
        self._begun = state is not None
        self._recent: deque[Row] = deque(maxlen=around)
        self.epoch = self.store.epoch  # of the last entry

    def follow(self, entries: Iterable[Row]) -> Iterator[Difference]:
        """Execute entries in order; yield those that differ. Raises AuditError if an entry does not follow."""
        store, recent = self.store, self._recent
        for entry in entries:
            number, seq, call, outcome, epoch = entry
            if number != self.number + 1:
                raise AuditError(_gap(self.number, number))
            now, op = compare.read_call(call)
            if not store.settings["journal"]:
                self._check_start(seq, epoch, now)
            try:
                found = step(store, now, op)
            except Exception as error:  # production reached a state that the model cannot reach
                raise AuditError(_impossible(number, call, error)) from error
            if store.epoch != epoch:
                raise AuditError(_mixed(number, epoch, store.epoch))
            if store.seq != seq or not compare.matches(found, outcome):
                yield self._difference(entry, now, op, as_json.outcome(found))
                store.seq = seq
            store.recorded.clear()
            recent.append(entry)
            self.number, self.epoch = number, epoch

    @property
    def entries(self) -> int:
        """The number of entries that were executed."""
        return self.number - self._first

    def state(self) -> Snapshot:
        """Take the state after the last entry: a later audit can begin with it."""
        self.store.journaled = self.number
        return replace(snapshot.of(self.store), journal=())

    def _check_start(self, seq: int, epoch: int, now: int) -> None:
        """Refuse an entry if operations before it were not recorded: their effects are unknown.

        The first operation of a namespace may have begun an epoch in its step, before it turned the journal on.
        """
        if epoch and seq == 2 and not (self.entries or self._begun):
            step(self.store, now, BeginEpoch(epoch))
        elif self.entries or self._begun or seq > 1:
            raise AuditError(
                f"Before entry {self.number + 1} the namespace was in use, and nothing was recorded: the journal was "
                f"not on from its first operation, or was turned off. Begin with a snapshot of a moment when it was on."
            )

    def _difference(self, entry: Row, now: int, op: Operation, expected: str) -> Difference:
        before = tuple(f"{call} {outcome}" for _, _, call, outcome, _ in self._recent)
        number, seq, call, outcome, _ = entry
        named = dict.fromkeys([*_named(op), *_shown(op, outcome), *_shown(op, expected)])
        jobs = tuple(as_json.outcome(step(self.store, now, Get(jid))) for jid in list(named)[:10])
        return Difference(number, call, outcome, expected, seq, self.store.seq, before, jobs)


@contextmanager
def without_collection() -> Iterator[None]:
    """Turn off Python's garbage collector: steps make no cycles, and a collection visits all jobs in memory.

    Collections would take a quarter of the time of an audit.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _gap(last: int, number: int) -> str:
    if number <= last:
        return f"Entry {number} of the journal comes after entry {last}: entries must be read in order, once."
    return (
        f"The entries {last + 1} to {number - 1} of the journal are not there: more came meanwhile than max-journal "
        f"keeps, or its beginning was not read. Begin with a snapshot that is newer."
    )


def _mixed(number: int, epoch: int, before: int) -> str:
    return (
        f"Entry {number} is of epoch {epoch}, and the state before it of epoch {before}, but no entry begins epoch "
        f"{epoch}: the entries are of two histories, because the server lost the end of its log. Read the journal anew "
        f"with the epoch of the last entry, which names where the histories part."
    )


def _impossible(number: int, call: str, error: Exception) -> str:
    return (
        f"The model cannot execute entry {number}, {call[:500]}: {error!r}. It did not begin with the state before it; "
        f"or, after a difference, nothing more can be told. Begin anew with a snapshot."
    )


def _named(op: Any) -> list[str]:
    """Give the jobs that an operation names."""
    jids = [*getattr(op, "jids", ()), *([op.jid] if hasattr(op, "jid") else [])]
    return [*jids, *(jid for one in getattr(op, "jobs", ()) for jid in _named(one))]


def _shown(op: Operation, outcome: str) -> list[str]:
    """Give the jobs that a reply shows."""
    try:
        found = as_json.found(op, outcome)
    except (TypeError, ValueError):  # it is not even formed like a reply
        return []
    jobs = getattr(found, "jobs", found)
    return [one.jid for one in jobs if isinstance(one, Job)] if isinstance(jobs, tuple) else []


def differences(expected: Snapshot, found: Snapshot) -> list[str]:
    """List where a server's state differs from the state after an audit, as `path: model's != server's`.

    Idle workers and wake-ups of a queue are not compared, because no operation takes them from the queue. The texts of
    events and entries are not compared either.
    """
    return snapshot.difference(_comparable(expected), _comparable(found))


def _comparable(found: Snapshot) -> Snapshot:
    queues = {name: {**queue, "idle": 0, "wakes": 0} for name, queue in found.queues.items()}
    queues = {name: queue for name, queue in queues.items() if queue != snapshot.DEFAULT_QUEUE}
    return replace(found, queues=queues, journal=())

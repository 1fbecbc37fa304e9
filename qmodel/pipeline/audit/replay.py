"""The audit: did production do what the model says?

The journal holds every operation that may change something, with its moment, and what came of it. Each is executed once
more, here on the model; what comes of it must be the same, and so must the sequence of the last event. So every answer
that was ever given is proved, or named with the operations that led to it. Only reads are not in the journal: what they
answered is not looked at.

An audit begins with a state: that of an empty namespace, or a snapshot, which says up to which entry it came. It needs
all entries after that, and proves by their numbers that it has them. It ends with a state, from which the next one goes
on: memory grows with what the namespace holds, and not with what ever happened.

After a difference the model goes on as if it had been right. The events are counted as production did, so that one that
is lacking is not a difference of all that follows.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from qmodel.contract.operations import Get, Operation
from qmodel.contract.replies import Job, Recorded
from qmodel.errors import QmodelError
from qmodel.model import restore, snapshot
from qmodel.model.engine import step
from qmodel.model.snapshot import Snapshot
from qmodel.model.state import journal
from qmodel.model.state.store import Store
from qmodel.pipeline.journal import texts
from qmodel.wire import as_json

AROUND = 20
"""So many operations before one that differs are shown with it."""


class AuditError(QmodelError):
    """The audit cannot go on; the sentence says why, and what to do."""


class Difference(NamedTuple):
    """An entry of which production made something else than the model."""

    number: int
    call: str
    outcome: str
    expected: str
    seq: int  # of the last event after it
    expected_seq: int
    before: tuple[str, ...]  # the entries before, as `call outcome`
    jobs: tuple[str, ...]  # those it is about, as the model has them after it: JSON, as a reply has them

    def __str__(self) -> str:
        lines = [f"Entry {self.number} of the journal:", *(f"     {line}" for line in self.before)]
        lines += [f"  -> {self.call}", f"     production: {self.outcome}, last event {self.seq}"]
        lines += [f"     the model:  {self.expected}, last event {self.expected_seq}"]
        return "\n".join([*lines, *(f"     the model's job: {job}" for job in self.jobs)])


class Audit:
    """An audit that goes on, entry by entry."""

    def __init__(self, state: Snapshot | None = None, around: int = AROUND) -> None:
        """Begin with a snapshot, or with an empty namespace."""
        self.store = Store() if state is None else restore.store(state)
        self.number = self._first = self.store.journaled
        self._begun = state is not None
        self._recent: deque[Recorded] = deque(maxlen=around)

    def follow(self, entries: Iterable[Recorded]) -> Iterator[Difference]:
        """Execute entries, in their order; give those that differ. Raises AuditError for what does not follow."""
        store, recent, is_on = self.store, self._recent, journal.is_on
        for entry in entries:
            number, seq, call, outcome = entry
            if number != self.number + 1:
                raise AuditError(_gap(self.number, number))
            now, op = texts.read(call)
            if not is_on(store):
                self._begin(op, seq)
            try:
                found = step(store, now, op)
            except Exception as error:  # production went where the model never comes to
                raise AuditError(_impossible(number, call, error)) from error
            if store.seq != seq or not texts.equal(found, outcome):
                yield self._difference(entry, now, op, as_json.outcome(found))
                store.seq = seq
            store.recorded.clear()
            recent.append(entry)
            self.number = number

    @property
    def entries(self) -> int:
        """How many were executed."""
        return self.number - self._first

    def state(self) -> Snapshot:
        """The state after the last entry: a later audit can begin with it."""
        self.store.journaled = self.number
        return replace(snapshot.of(self.store), journal=())

    def _begin(self, op: Operation, seq: int) -> None:
        """Refuse an entry before which others are not recorded: of those nobody knows what they did."""
        if self.entries or self._begun or seq > 1:
            raise AuditError(
                f"Before entry {self.number + 1} the namespace was in use, and nothing was recorded: the journal was "
                f"not on from its first operation, or was turned off. Begin with a snapshot of a moment when it was on."
            )

    def _difference(self, entry: Recorded, now: int, op: Operation, expected: str) -> Difference:
        number, seq, call, outcome = entry
        before = tuple(f"{call} {outcome}" for _, _, call, outcome in self._recent)
        named = dict.fromkeys([*_named(op), *_shown(op, outcome), *_shown(op, expected)])
        jobs = tuple(as_json.outcome(step(self.store, now, Get(jid))) for jid in list(named)[:10])
        return Difference(number, call, outcome, expected, seq, self.store.seq, before, jobs)


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python not look for garbage in cycles: no step makes any, and a look goes through all jobs that there are.

    That would take a quarter of the time of an audit.
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
        return f"Entry {number} of the journal comes after entry {last}: entries are to be read in their order, once."
    return (
        f"The entries {last + 1} to {number - 1} of the journal are not there: more came meanwhile than max-journal "
        f"keeps, or its beginning was not read. Begin with a snapshot that is newer."
    )


def _impossible(number: int, call: str, error: Exception) -> str:
    return (
        f"The model cannot execute entry {number}, {call[:500]}: {error!r}. It did not begin with the state before it; "
        f"or, after a difference, nothing more can be told. Begin anew with a snapshot."
    )


def _named(op: Any) -> list[str]:
    """The jobs that an operation names."""
    jids = [*getattr(op, "jids", ()), *([op.jid] if hasattr(op, "jid") else [])]
    return [*jids, *(jid for one in getattr(op, "jobs", ()) for jid in _named(one))]


def _shown(op: Operation, outcome: str) -> list[str]:
    """The jobs that a reply shows."""
    try:
        found = as_json.found(op, outcome)
    except (TypeError, ValueError):  # it has not even the form of one
        return []
    jobs = getattr(found, "jobs", found)
    return [one.jid for one in jobs if isinstance(one, Job)] if isinstance(jobs, tuple) else []


def differences(expected: Snapshot, found: Snapshot) -> list[str]:
    """Where the state of a server is another than the one that an audit came to, as `path: model's != server's`.

    Not compared are who sleeps at a queue and who was woken, for that is taken from the queue by no operation, and the
    texts of events and entries.
    """
    return snapshot.difference(_comparable(expected), _comparable(found))


def _comparable(found: Snapshot) -> Snapshot:
    queues = {name: {**queue, "idle": 0, "wakes": 0} for name, queue in found.queues.items()}
    queues = {name: queue for name, queue in queues.items() if queue != snapshot.DEFAULT_QUEUE}
    return replace(found, queues=queues, journal=())

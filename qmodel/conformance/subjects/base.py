"""Subjects: implementations that can be compared with the model.

A subject executes operations on an empty namespace of its own and shows its whole state. The model itself is the first
subject: with it, the comparison must find no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from qmodel.contract.events import Event
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, snapshot
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store, events_after


class Step(NamedTuple):
    """One operation at a moment (milliseconds since the epoch)."""

    now: int
    op: Operation


History = Sequence[Step]


class Executed:
    """What a record of an executed step says of it: the record has the step and its outcome."""

    step: Step
    outcome: Any

    @property
    def now(self) -> int:
        """When the step is."""
        return self.step.now

    @property
    def op(self) -> Any:
        """The operation."""
        return self.step.op

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.step.op.spec.name

    @property
    def refused(self) -> bool:
        """Whether it was refused."""
        return isinstance(self.outcome, Refusal)


class Crash(NamedTuple):
    """The outcome of an operation whose execution raised an exception."""

    error: str


class Seen(NamedTuple):
    """The result of one step on a subject: reply or Refusal, events, and the state, if it was read."""

    outcome: Any
    events: tuple[Event, ...]
    snapshot: Snapshot | None


class Subject(Protocol):
    """Executes operations and shows its state."""

    name: str
    pipelines: bool
    """Whether `run` is much faster than one call of `step` for each step."""

    def reset(self) -> None:
        """Start again with an empty namespace."""

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation; give its reply or Refusal."""

    def run(self, history: History, every: int = 1) -> list[Seen]:
        """Execute a whole history on an empty namespace.

        The state is read after every `every`-th step and after the last step.
        """

    def snapshot(self) -> Snapshot:
        """Read the whole state."""

    def events_after(self, seq: int) -> tuple[Event, ...]:
        """Read the events kept after a sequence number."""

    def close(self) -> None:
        """Release the subject's resources."""


def observe(subject: Subject, history: History, every: int = 1) -> list[Seen]:
    """Execute a history step by step on an empty namespace; end with the step that crashes."""
    subject.reset()
    seen: list[Seen] = []
    seq = 0
    for number, (now, op) in enumerate(history, 1):
        try:
            outcome = subject.step(now, op)
            events = subject.events_after(seq)
            looked = number % every == 0 or number == len(history)
            seen.append(Seen(outcome, events, subject.snapshot() if looked else None))
        except Exception as error:
            return [*seen, Seen(Crash(repr(error)), (), None)]
        seq = events[-1].seq if events else seq
    return seen


class ModelSubject:
    """The model, as a subject."""

    name = "model"
    pipelines = False

    def __init__(self) -> None:
        self.store = Store()

    def reset(self) -> None:
        """Start again with an empty store."""
        self.store = Store()

    def run(self, history: History, every: int = 1) -> list[Seen]:
        """Execute a history step by step."""
        return observe(self, history, every)

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation."""
        return engine.step(self.store, now, op)

    def snapshot(self) -> Snapshot:
        """Read the whole state."""
        return snapshot.of(self.store)

    def events_after(self, seq: int) -> tuple[Event, ...]:
        """Read the events after a sequence number."""
        return events_after(self.store, seq, self.store.seq - seq)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

"""Subjects: what can be compared with the model.

A subject executes operations on one empty namespace of its own and lets its whole state be seen. The
model itself is the first one: it shows that the machinery finds no difference where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from qmodel import engine
from qmodel.conformance import snapshot
from qmodel.conformance.snapshot import Snapshot
from qmodel.events import Event
from qmodel.operations import Operation
from qmodel.state.store import Store


class Step(NamedTuple):
    """One operation at a moment (milliseconds since the epoch)."""

    now: int
    op: Operation


History = Sequence[Step]


class Seen(NamedTuple):
    """What a subject showed of one step: the reply or Refusal, the events, and the state if looked at."""

    outcome: Any
    events: tuple[Event, ...]
    snapshot: Snapshot | None


class Subject(Protocol):
    """Executes operations and shows its state."""

    name: str
    pipelines: bool
    """Whether `run` is much faster than as many calls of `step`."""

    def reset(self) -> None:
        """Begin anew with an empty namespace."""

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation; give its reply or Refusal."""

    def run(self, history: History, every: int = 1) -> list[Seen]:
        """Execute a whole history on an empty namespace.

        The state is looked at after every `every`-th step and after the last one.
        """

    def snapshot(self) -> Snapshot:
        """The whole state."""

    def events_after(self, seq: int) -> tuple[Event, ...]:
        """The events kept after a sequence number."""

    def close(self) -> None:
        """Give back what the subject holds."""


class Stepping:
    """The part of a subject that follows from the rest, for those that do not pipeline."""

    pipelines = False

    def run(self: Subject, history: History, every: int = 1) -> list[Seen]:
        """Execute a history step by step."""
        self.reset()
        seen = []
        seq = 0
        for number, (now, op) in enumerate(history, 1):
            outcome = self.step(now, op)
            events = self.events_after(seq)
            seq = events[-1].seq if events else seq
            looked = number % every == 0 or number == len(history)
            seen.append(Seen(outcome, events, self.snapshot() if looked else None))
        return seen


class ModelSubject(Stepping):
    """The model, as a subject."""

    name = "model"

    def __init__(self) -> None:
        self.store = Store()

    def reset(self) -> None:
        """Begin anew with an empty store."""
        self.store = Store()

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation."""
        return engine.step(self.store, now, op)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return snapshot.of(self.store)

    def events_after(self, seq: int) -> tuple[Event, ...]:
        """The events after a sequence number."""
        events = self.store.events
        return () if self.store.seq == seq else tuple(event for event in events if event.seq > seq)

    def close(self) -> None:
        """Nothing is held."""

"""Shared by the tests of laws: bulk histories, drawn once, and ways to plant a fault."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import HypothesisChooser, RandomChooser
from qmodel.conformance.subjects.base import Executed, Step
from qmodel.contract.events import Event
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.model import engine, snapshot
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store, events_after

BULK = 250
STEPS = 60

NOT_BARE = {"ops/bare": "local bare = {}\nbare.ways = {}\n"}
"""Texts of the library by which no operation of a row is done by ops/bare.lua."""

VERBS_ALONE = NOT_BARE | {"ops/plain": "local plain = {}\nplain.answer = false\nplain.ways = {}\n"}
"""Texts of the library by which no operation is done in the plain case at once."""

QUICK = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@functools.cache
def bulk(count: int = BULK) -> list[list[Step]]:
    """Draw the histories that every law is checked on."""
    return [runner.draw(RandomChooser(f"laws.{seed}"), STEPS) for seed in range(count)]


@st.composite
def drawn(draw: Any) -> list[Step]:
    """Draw a history of fixed length; Hypothesis can remove each step alone."""
    return runner.draw(HypothesisChooser(draw), 25)


@dataclass(frozen=True, slots=True)
class Moment(Executed):
    """A step, and the store before (as a snapshot, if asked for) and after it."""

    step: Step
    before: Snapshot | None
    outcome: Any
    events: tuple[Event, ...]
    store: Store


def state_of(store: Store) -> Snapshot:
    """Give the whole state for comparisons, without the journal, which also records refusals and resends."""
    return replace(snapshot.of(store), journal=(), journaled=0)


def walk(history: list[Step], before: bool = False) -> Iterator[Moment]:
    """Execute a history on a new model; yield each step with the state around it."""
    store = Store()
    for step in history:
        seen = state_of(store) if before else None
        seq = store.seq
        outcome = engine.step(store, *step)
        events = events_after(store, seq, store.seq - seq)
        yield Moment(step, seen, outcome, events, store)


def last(history: list[Step]) -> Moment:
    """Give the store at the end of a history."""
    return list(walk(history))[-1]


def everywhere(before: bool = False, count: int = BULK) -> Iterator[Moment]:
    """Yield every step of every history."""
    for history in bulk(count):
        yield from walk(history, before)


Law = Callable[[], None]


def fails(law: Law) -> bool:
    """Tell whether a law is violated: for negative twins, which plant a fault first."""
    try:
        law()
    except Exception:  # an assertion of the law, or one of the model's own: noticed is noticed
        return True
    return False


def plant(monkeypatch: pytest.MonkeyPatch, name: str, verb: Callable[..., Any]) -> None:
    """Replace a verb by `verb(original, store, now, op)`."""
    cls = CATALOGUE[name].cls
    original, *rest = engine._VERBS[cls]

    def planted(store: Store, now: int, op: Operation) -> Any:
        return verb(original, store, now, op)

    monkeypatch.setitem(engine._VERBS, cls, (planted, *rest))

"""Copies of a store share nothing that a step changes, and fingerprints tell states apart."""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.generate import Generator
from qmodel.contract.operations import Events, Length, Pause, Put, Stats, Untrack
from qmodel.model import engine, snapshot
from qmodel.model.copies import UNSEEN, Fingerprints, are_equal, copy
from qmodel.model.state.store import Store

SEEDS = range(25)


class Path:
    """Yield a store and the fingerprint of its events after each step."""

    def __init__(self, prints: Fingerprints) -> None:
        self.store = Store()
        self._prints = prints
        self._events = b""

    def step(self, now: int, op: Any) -> Any:
        seq = self.store.seq
        outcome = engine.step(self.store, now, op)
        self._events = self._prints.events(self._events, seq, self.store)
        return outcome

    @property
    def state(self) -> bytes:
        return self._prints.state(self.store, self._events)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_is_equal_and_steps_on_one_do_not_change_the_other(seed: int) -> None:
    store, generator = Store(), Generator(RandomChooser(f"copy.{seed}"))
    for _ in range(80):
        step = generator.step(store)
        if step is None:
            continue
        before, events = snapshot.of(store), tuple(store.events)
        other = copy(store)
        outcome = engine.step(other, *step)
        assert (snapshot.of(store), tuple(store.events)) == (before, events)
        other = copy(store)
        assert engine.step(store, *step) == outcome
        assert (snapshot.of(other), tuple(other.events)) == (before, events)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_and_its_changed_copy_are_equal_only_if_their_snapshots_and_events_are(seed: int) -> None:
    store, generator, equal = Store(), Generator(RandomChooser(f"copy.{seed}")), 0
    for _ in range(80):
        step = generator.step(store)
        if step is None:
            continue
        other = copy(store)
        assert are_equal(store, other)
        engine.step(other, *step)
        if are_equal(store, other):
            equal += 1
            assert (snapshot.of(store), store.events) == (snapshot.of(other), other.events)
        else:
            assert any(getattr(store, name) != getattr(other, name) for name in ("seq", "journaled")) or not (
                snapshot.of(store) == snapshot.of(other) and store.settings == other.settings
            )
        store = other
    assert 0 < equal < 80


@pytest.mark.parametrize("seed", SEEDS)
def test_fields_omitted_from_a_fingerprint_affect_no_other_operation(seed: int) -> None:
    """Statistics and events are deleted before each step; only operations that read them notice."""
    store, spoiled, generator = Store(), Store(), Generator(RandomChooser(f"unseen.{seed}"))
    for _ in range(80):
        step = generator.step(store)
        if step is None:
            continue
        spoiled.days.clear()
        spoiled.events.clear()
        outcomes = engine.step(store, *step), engine.step(spoiled, *step)
        assert any(step.op.spec.name in names for names in UNSEEN.values()) or outcomes[0] == outcomes[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_fingerprints_are_equal_for_equal_states_and_differ_for_others(seed: int) -> None:
    store, generator = Store(), Generator(RandomChooser(f"prints.{seed}"))
    steps = []
    for _ in range(40):
        if (step := generator.step(store)) is not None:
            steps.append(step)
            engine.step(store, *step)
    asked = [op for _, op in steps if getattr(op, "request", "")]
    prints = Fingerprints([*asked, *asked, Events(), Stats("q")])
    one, same = Path(prints), Path(prints)
    for step in steps:
        before, state, events = snapshot.of(one.store), one.state, len(one.store.events)
        one.step(*step)
        same.step(*step)
        assert one.state == same.state
        changed = (snapshot.of(one.store), len(one.store.events)) != (before, events)
        assert (one.state != state) == changed


def test_fields_that_no_operation_reads_do_not_change_the_fingerprint() -> None:
    put, length = (Put("q", "a", "k", ""), Length("q"))
    for asked, equal in (([put], True), ([put, Events()], False)):
        prints = Fingerprints(asked)
        one, other = Path(prints), Path(prints)
        one.step(1, put)
        other.step(1, put)
        other.step(1, length)
        assert one.state == other.state
        one.store.events.clear()
        assert (prints.events(b"", 0, one.store) == prints.events(b"", 0, other.store)) is equal


def test_the_order_of_replies_without_a_resend_does_not_change_the_fingerprint() -> None:
    pause, track = Pause(("q",), request="r1"), Untrack("a", "r2")
    for asked, equal in (([pause, track], True), ([pause, track, track], False)):
        prints = Fingerprints(asked)
        one, other = Path(prints), Path(prints)
        for path, order in ((one, (pause, track)), (other, (track, pause))):
            for op in order:
                path.step(1, op)
        assert (one.state == other.state) is equal


def test_an_unknown_type_is_refused() -> None:
    store = Store()
    store.jobs["a"] = object()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="a store holds a object"):
        copy(store)

"""Data that the model stores in plain tuples or shares between jobs behave like data of one job alone."""

from __future__ import annotations

import json
import pickle
from copy import copy
from dataclasses import replace

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.replies import Stage, Stages
from qmodel.model import engine
from qmodel.model.state import options
from qmodel.model.state.records import NONE
from qmodel.model.state.store import Store, events_after

KEPT = Stages([("put", 1, ("q",)), ("popped", 2, ("w", 3))])  # type: ignore[list-item]
PLAIN = (Stage("put", 1, ("q",)), Stage("popped", 2, ("w", 3)))


def test_a_history_is_a_tuple_of_stages() -> None:
    first, last = KEPT
    assert (type(first), first.what, last.named) == (Stage, "put", {"worker": "w", "token": 3})
    assert (KEPT[0].at, KEPT[-1].what, [stage.what for stage in KEPT[:1]]) == (1, "popped", ["put"])
    assert [stage.what for stage in reversed(KEPT)] == ["popped", "put"]
    assert KEPT == PLAIN and PLAIN == KEPT and hash(KEPT) == hash(PLAIN) and repr(KEPT) == repr(PLAIN)
    assert PLAIN[1] in KEPT and "put" not in KEPT and (KEPT.index(PLAIN[1]), KEPT.count(PLAIN[0])) == (1, 1)
    assert len(KEPT) == 2 and PLAIN[:1] != KEPT and KEPT + PLAIN == PLAIN + PLAIN
    assert json.loads(json.dumps(KEPT)) == [["put", 1, ["q"]], ["popped", 2, ["w", 3]]]
    assert type(pickle.loads(pickle.dumps(KEPT))) is Stages and pickle.loads(pickle.dumps(KEPT)) == copy(KEPT) == KEPT
    assert not Stages()
    assert all(type(stage) is Stage for stage in tuple(KEPT))


def test_jobs_that_share_nothing_are_told_apart() -> None:
    store = Store()
    for jid in ("a", "b", "c"):
        engine.step(store, 0, ops.Put("q", jid, "k", ""))
    assert store.jobs["a"].tags is store.jobs["b"].tags is NONE

    engine.step(store, 0, ops.TagAdd("a", ("t",)))
    engine.step(store, 0, ops.Put("q", "b", "k", "", depends=("a",)))

    assert [list(store.jobs[jid].tags) for jid in "abc"] == [["t"], [], []]
    assert [list(store.jobs[jid].dependents) for jid in "abc"] == [["b"], [], []]
    assert [list(store.jobs[jid].dependencies) for jid in "abc"] == [[], ["a"], []]
    assert dict(NONE) == {}


def test_what_all_jobs_share_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        NONE["t"] = 1


def test_events_are_given_as_events() -> None:
    store = Store()
    engine.step(store, 5, ops.Put("q", "a", "k", ""))
    (event,) = events_after(store, 0, 10)
    assert event.named == {"jid": "a", "queue": "q", "klass": "k", "state": "waiting"}
    assert (event.seq, event.at, events_after(store, 1, 10)) == (1, 5, ())


@pytest.mark.parametrize("name", options.OF_PUT)
def test_each_option_of_a_put_is_seen(name: str) -> None:
    plain = ops.Put("q", "a", "k", "")
    assert not options.are_given(plain)
    assert options.are_given(replace(plain, **{name: 1}))

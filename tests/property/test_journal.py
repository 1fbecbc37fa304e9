"""The journal suffices to reproduce the same replies and the same state."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.script import Script
from qmodel.conformance.subjects.lua import LuaSubject
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, restore, snapshot
from qmodel.model.state import journal
from qmodel.model.state.store import Store
from qmodel.wire import as_json
from tests.property.support import state_of

SEEDS = range(40)


def recorded(seed: int, steps: int = 60) -> Store:
    """Execute a drawn history with the journal on."""
    store = Store()
    engine.step(store, 0, ops.ConfigSet("journal", 1))
    for now, op in runner.draw(RandomChooser(f"journal {seed}"), steps):
        if getattr(op, "option", "") not in ("journal", "max-journal"):
            engine.step(store, now, op)
    return store


@pytest.mark.parametrize("seed", SEEDS)
def test_the_journal_suffices_to_reproduce_replies_and_state(seed: int) -> None:
    store, again = recorded(seed), Store()
    entries = journal.after(store, 0, 1000)
    for number, seq, call, outcome, epoch in entries:
        now, op = as_json.read(call)
        assert as_json.outcome(engine.step(again, now, op)) == outcome, number
        assert (again.seq, again.epoch) == (seq, epoch)
    assert snapshot.difference(state_of(again), state_of(store)) == []
    assert journal.after(again, 0, 1000) == entries


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_restored_from_a_snapshot_continues_as_the_original(seed: int) -> None:
    history = runner.draw(RandomChooser(f"restored {seed}"), 80)
    store = Store()
    for step in history[:50]:
        engine.step(store, *step)
    text = restore.dumps(snapshot.of(store))
    other = restore.store(restore.loads(text))
    for step in history[50:]:
        one, two = engine.step(store, *step), engine.step(other, *step)
        if step.op.spec.name not in ("events", "journal"):
            assert as_json.outcome(one) == as_json.outcome(two), step
    assert snapshot.difference(state_of(store), state_of(other)) == []


def test_an_invalid_snapshot_is_refused() -> None:
    for text in ("", "[]", "{}", '{"seq": 1}', '{"seq": {"no": 1}}'):
        with pytest.raises(ValueError):
            restore.loads(text)


def test_nothing_is_recorded_without_the_option() -> None:
    s = Script()
    s.put("a")
    s.set("heartbeat", 5)
    s.set("journal", 0)
    assert s.do(ops.Journal()) == ()


def test_the_journal_begins_and_ends_with_the_operations_that_set_its_option() -> None:
    s = Script()
    s.put("a")
    s.set("journal", 1)
    s.put("b")
    s.set("journal", 0)
    s.put("c")
    said = [json.loads(entry.call)["op"] for entry in s.do(ops.Journal())]
    assert said == ["config_set", "put_many", "config_set"]


def test_refusals_and_resends_are_recorded_but_reads_and_malformed_calls_are_not() -> None:
    s = Script(5)
    s.set("journal", 1)
    for _ in range(2):
        s.do(ops.Put("q", "a", "k", "", request="r"))
    s.do(ops.Get("a"))
    s.do(ops.Put("q", "no blanks", "k", ""))
    s.do(ops.Complete("a", 1))
    put = '{"op":"put","now":5,"queue":"q","jid":"a","klass":"k","data":"","request":"r"}'
    assert s.do(ops.Journal(1)) == (
        (2, 2, put, '{"reply":"a"}', 0),
        (3, 2, put, '{"reply":"a"}', 0),
        (4, 2, '{"op":"complete","now":5,"jid":"a","token":1}', '{"refused":["LOCK_LOST","a","1","waiting",""]}', 0),
    )


def test_recorded_operations_are_read_unchanged() -> None:
    for seed in range(10):
        store = recorded(seed)
        for (_, now, op, outcome, _), entry in zip(store.recorded, journal.after(store, 0, 1000), strict=True):
            assert as_json.read(entry.call) == (now, op)
            found = as_json.found(op, entry.outcome)
            if isinstance(outcome, Refusal):
                assert found == Refusal(outcome.code, tuple(map(str, outcome.facts)))
            else:
                assert repr(found) == repr(outcome)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"op":"put"}', '{"op":"none","now":1}', '{"op":"get","now":1,"x":1}']
)
def test_an_invalid_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        as_json.read(text)


def test_operations_that_change_something_never_reply_nothing() -> None:
    """The library cannot record an empty reply."""
    changing = [spec for spec in CATALOGUE.values() if not spec.reads]
    assert [spec.name for spec in changing if type(None) in get_args(replies.SHAPES[spec.reply])] == []


def test_light_entries_are_read_with_one_command_and_heavy_ones_one_by_one() -> None:
    subject = LuaSubject()
    subject.reset()
    calls = subject.host.keyspace.calls
    data = ["{}"] * 20 + ["x" * 100_000] * 3 + ["{}"] * 100
    for put in [ops.ConfigSet("journal", 1), *(ops.Put("q", f"j{i}", "K", text) for i, text in enumerate(data))]:
        subject.step(0, put)

    def read(after: int, count: int) -> tuple[list[int], int]:
        before = calls["XRANGE"]
        page = subject.step(0, ops.Journal(after, count))
        return [entry.number for entry in page], calls["XRANGE"] - before

    assert read(0, 24) == ([*range(1, 25)], 24)
    assert read(24, 50) == ([*range(25, 75)], 1)
    assert read(24, 1000) == ([*range(25, 125)], 2)
    assert read(30, 1000) == ([*range(31, 125)], 2)

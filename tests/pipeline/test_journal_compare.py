"""The quick ways to read and compare calls agree with `qmodel.wire.as_json`."""

from __future__ import annotations

import json

import pytest

from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.contract.operations import CompleteAndPop, Pop, Put, PutMany
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Recorded
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.pipeline.journal import compare
from qmodel.pipeline.journal.pages import head
from qmodel.wire import as_json, journal


@pytest.fixture(params=["with msgspec", "without"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with msgspec, and without it."""
    if request.param == "without":
        monkeypatch.setattr(compare, "_decode", json.loads)
        monkeypatch.setattr(compare, "_encode", None)
    else:
        pytest.importorskip("msgspec")


def test_every_call_and_every_outcome_is_read_and_equal(both: None) -> None:
    for seed in range(20):
        store = Store()
        for now, op in runner.draw(RandomChooser(f"texts {seed}"), 60):
            found = engine.step(store, now, op)
            if isinstance(found, Refusal) and found.code == "BAD_ARGUMENT":
                continue  # no journal has those
            call, outcome = as_json.call(now, op), as_json.outcome(found)
            assert compare.read_call(call) == (now, op)
            assert compare.matches(found, outcome)
            assert not compare.matches(found, outcome[:-1] + " }")
            assert head(Recorded(1, 1, call, outcome)) == (now, op.spec.name)


@pytest.mark.parametrize(
    "found", [Refusal("JOB_NOT_FOUND", ("a",)), 1e16, 0.1, '\x00\x1f\x7f\u2028é😀"\\/\n', ("\ud800",), (), (None, True)]
)
def test_what_is_written_otherwise_is_equal_all_the_same(both: None, found: object) -> None:
    assert compare.matches(found, as_json.outcome(found))
    assert not compare.matches(found, '{"reply":"other"}')


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"op":"put"}', '{"op":"none","now":1}', '{"op":"get","now":1} x'])
def test_an_invalid_call_is_refused(both: None, text: str) -> None:
    with pytest.raises(ValueError):
        compare.read_call(text)


def test_lists_of_operations_are_read(both: None) -> None:
    call = '{"op":"put_many","now":1,"jobs":[{"queue":"q","jid":"a","klass":"k","data":"","tags":["x"]}]}'
    assert compare.read_call(call)[1].jobs == (Put("q", "a", "k", "", tags=("x",)),)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text", [b"*0\r\n", b"$-1\r\n", b":-5\r\n", b"$4\r\na\r\nb\r\n", b"*2\r\n$0\r\n\r\n*2\r\n:7\r\n$1\r\nx\r\n"]
)
def test_what_went_over_the_line_is_read_alike_with_hiredis_and_without(text: bytes) -> None:
    pytest.importorskip("hiredis")
    quick = journal._reader()
    assert quick is not journal.resp
    assert quick(text) == journal.resp(text)


def test_jobs_are_compared_without_being_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("msgspec")
    store, found = Store(), list[tuple[object, str]]()
    engine.step(store, 1, PutMany(tuple(Put("q", jid, "k", "{}") for jid in "abc")))
    first = engine.step(store, 1, Pop("q", "w"))[0]
    for op in (CompleteAndPop(first.jid, first.token, "q", "w"), Pop("q", "w", 2), Pop("q", "w")):
        reply = engine.step(store, 2, op)
        found.append((reply, as_json.outcome(reply)))
    monkeypatch.delattr(as_json, "outcome")
    assert [compare.matches(*one) for one in found] == [True] * 3

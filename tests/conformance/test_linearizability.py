"""The linearizability checker on known histories, and compared with the definition on small ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from qmodel.conformance.concurrency import linearizability
from qmodel.conformance.concurrency.calls import LOST, Call
from qmodel.conformance.concurrency.linearizability import check
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store
from tests.conformance.simulated import history, is_linearizable, spoiled

pytestmark = pytest.mark.tester

PUT = ops.Put("q", "a", "k", "")


def told(*steps: tuple[int, Operation]) -> list[Any]:
    """Give the model's replies to operations in sequence."""
    store = Store()
    return [engine.step(store, now, op) for now, op in steps]


def call(client: str, called: int, returned: int | None, op: Operation, outcome: Any, now: int = 5) -> Call:
    return Call(client, called, returned, now, op, outcome)


A, B = (ops.Pop("q", name) for name in "ab")
_, FIRST, NONE = told((5, PUT), (5, A), (5, B))
(LEASE,) = FIRST
COMPLETE = ops.Complete("a", LEASE.token)

LINEARIZABLE = {
    "nothing happened": [],
    "one after the other": [call("a", 0, 1, PUT, "a"), call("a", 2, 3, A, FIRST)],
    "a pop that overlaps a put may find its job": [call("a", 0, 9, A, FIRST), call("b", 1, 8, PUT, "a")],
    "a pop that overlaps a put may find nothing": [call("a", 0, 9, A, ()), call("b", 1, 8, PUT, "a")],
    "two pops overlap, one finds the job": [
        call("p", 0, 1, PUT, "a"),
        call("a", 2, 9, A, FIRST),
        call("b", 3, 8, B, NONE),
    ],
    "the one who called later was first": [
        call("p", 0, 1, PUT, "a"),
        call("b", 2, 9, B, NONE),
        call("a", 8, 10, A, FIRST),
    ],
    "what touches overlaps": [call("a", 0, 5, A, FIRST), call("b", 5, 8, PUT, "a")],
    "a lost put happened": [call("p", 0, None, PUT, LOST), call("a", 2, 3, A, FIRST)],
    "a lost put did not happen": [call("p", 0, None, PUT, LOST), call("a", 2, 3, A, ())],
    "a lost put happened late": [
        call("p", 0, None, PUT, LOST),
        call("b", 2, 3, B, ()),
        call("a", 4, 5, A, FIRST),
    ],
    "a lost pop took the job": [
        call("p", 0, 1, PUT, "a"),
        call("a", 2, None, A, LOST),
        call("b", 3, 4, B, NONE),
    ],
    "a lost operation changed nothing when it might have, and something later": [
        call("a", 0, None, ops.Cancel(("a",)), LOST),
        call("p", 1, 2, PUT, "a"),
        call("a", 3, 4, ops.Length("q"), 1),
        call("a", 5, 6, ops.Length("q"), 0),
    ],
    "only operations without a reply": [call("a", 0, None, A, LOST), call("b", 0, None, ops.Get("a"), LOST)],
    "refused, as the model refuses": [
        call("a", 0, 1, ops.Complete("x", 7), Refusal("JOB_NOT_FOUND", ("x",))),
    ],
    "two namespaces do not know of each other": [
        call("a", 0, 1, PUT, "a"),
        call("b", 2, 3, B, ())._replace(namespace="other:"),
    ],
}

VIOLATIONS = {
    "a pop finds what is put only afterwards": [call("a", 0, 1, A, FIRST), call("p", 2, 3, PUT, "a")],
    "a pop finds nothing after the put": [call("p", 0, 1, PUT, "a"), call("a", 2, 3, A, ())],
    "one job for two": [
        call("p", 0, 1, PUT, "a"),
        call("a", 2, 9, A, FIRST),
        call("b", 3, 8, B, tuple(job._replace(worker="b") for job in FIRST)),
    ],
    "a read that is older than one before it": [
        call("p", 0, 9, PUT, "a"),
        call("a", 1, 2, ops.Length("q"), 1),
        call("b", 3, 4, ops.Length("q"), 0),
    ],
    "a lost put happened twice": [
        call("p", 0, None, PUT, LOST),
        call("a", 2, 3, ops.Length("q"), 1),
        call("a", 4, 5, ops.Cancel(("a",)), ("a",)),
        call("a", 6, 7, ops.Length("q"), 1),
    ],
    "a put is lost though its reply came": [call("p", 0, 1, PUT, "a"), call("p", 2, 3, ops.Get("a"), None)],
    "somebody finished what somebody else was given": [
        call("p", 0, 1, PUT, "a"),
        call("a", 2, 3, A, FIRST),
        call("b", 4, 5, ops.Complete("a", LEASE.token + 1), "complete"),
    ],
    "refused, but otherwise": [call("a", 0, 1, COMPLETE, Refusal("WRONG_STATE", ("a", "waiting")))],
    "a reply that no operation gives": [call("p", 0, 1, PUT, 7)],
    "the second namespace": [
        call("a", 0, 1, PUT, "a"),
        call("b", 2, 3, B, FIRST)._replace(namespace="other:"),
    ],
}


@pytest.mark.parametrize("calls", LINEARIZABLE.values(), ids=LINEARIZABLE)
def test_a_linearizable_history_is_found_to_be(calls: list[Call]) -> None:
    verdict = check(calls)
    assert verdict.answer == "linearizable", verdict
    known = {n for n, one in enumerate(verdict.history) if one.returned is not None}
    assert known <= set(verdict.order)


@pytest.mark.parametrize("calls", VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_is_found(calls: list[Call]) -> None:
    verdict = check(calls)
    assert verdict.answer == "violation", verdict
    assert verdict.stuck is not None
    assert verdict.stuck in verdict.instead
    assert verdict.stuck not in verdict.order


# ---- the definition


@pytest.mark.parametrize("seed", range(120))
def test_on_small_histories_the_search_agrees_with_the_definition(seed: int) -> None:
    calls = history(str(seed), 3 + seed % 2, 6, jobs=1 + seed % 2, lose=0.2 * (seed % 3), watched=seed % 2 == 0)
    assert is_linearizable(calls)
    assert check(calls).answer == "linearizable"
    for number in range(4):
        other = spoiled(calls, f"{seed}.{number}")
        assert (check(other).answer == "linearizable") == is_linearizable(other)


@pytest.mark.parametrize("seed", range(12))
def test_dropped_states_are_computed_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        calls = spoiled(history(f"dropped {seed}", 4, 40, lose=0.05 * (seed % 2)), f"{seed}.{number}")
        monkeypatch.undo()
        expected = check(calls)
        monkeypatch.setattr(linearizability, "KEPT", 3)
        found = check(calls)
        assert (found.answer, found.order, found.instead) == (expected.answer, expected.order, expected.instead)


def test_some_changed_histories_are_linearizable_and_some_are_not() -> None:
    found = [check(spoiled(history(str(seed), 3, 6, jobs=2), str(seed))).answer for seed in range(60)]
    assert 5 < found.count("violation") < 55


# ---- larger ones


@pytest.mark.parametrize(("clients", "lose"), [(4, 0.0), (8, 0.02), (24, 0.0)])
def test_a_long_history_is_decided(clients: int, lose: float) -> None:
    verdict = check(history("long", clients, 1000, lose=lose))
    assert verdict.answer == "linearizable"
    assert verdict.steps < 10_000


def test_a_wrong_reply_deep_in_a_long_history_is_found() -> None:
    calls = history("long", 6, 1000)
    (n, *_) = (n for n, one in enumerate(calls) if n > 800 and isinstance(one.op, ops.Pop) and one.outcome)
    calls[n] = calls[n]._replace(outcome=())
    verdict = check(calls)
    assert verdict.answer == "violation"
    assert verdict.stuck is not None and abs(verdict.stuck - n) < 20


def test_the_model_gives_the_recorded_replies_in_the_order_found() -> None:
    calls = history("order", 6, 300, lose=0.05)
    verdict = check(calls)
    steps = [(calls[n].now, calls[n].op) for n in verdict.order]
    for n, outcome in zip(verdict.order, told(*steps), strict=True):
        assert calls[n].returned is None or calls[n].outcome == outcome


def test_a_search_that_is_given_up_reports_the_longest_order() -> None:
    verdict = check(history("long", 8, 400), steps=100)
    assert verdict.answer == "undecided"
    assert 0 < len(verdict.order) < 400
    assert str(verdict).startswith("Undecided: 401 operations of 9 clients; the longest order found so far has ")


def test_a_search_may_start_from_a_state() -> None:
    store = Store()
    engine.step(store, 5, PUT)
    assert check([call("a", 0, 1, A, FIRST)], start=store).answer == "linearizable"
    assert check([call("a", 0, 1, A, FIRST)]).answer == "violation"
    assert store.seq == 1


# ---- no partition within a namespace


def renumbered(calls: Sequence[Call]) -> list[Call]:
    """Give the history of one queue alone, with its tokens renumbered."""
    store = Store()
    return [one._replace(outcome=engine.step(store, one.now, one.op)) for one in calls]


def test_queues_are_not_checked_separately() -> None:
    """Each queue alone is linearizable, with renumbered tokens. Both together are not: the tokens show that the pop
    from r came before the put into r, although the put had returned before the pop was called."""
    in_q = [call("a", 0, 1, PUT, "a"), call("a", 2, 3, A, FIRST)]
    put, pop = ops.Put("r", "b", "k", ""), ops.Pop("r", "b")
    *_, right = told((5, PUT), (5, A), (5, put), (5, pop))
    (job,) = right
    in_r = [call("b", 4, 5, put, "b"), call("b", 6, 7, pop, right)]
    wrong = [in_r[0], in_r[1]._replace(outcome=(job._replace(token=1),))]

    assert check(in_q + in_r).answer == "linearizable"
    assert check(in_q + wrong).answer == "violation"
    for alone in (in_q, renumbered(wrong)):
        assert check(alone).answer == "linearizable"

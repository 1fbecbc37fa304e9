"""The closed graph: every family in the scopes of the gate, its canonical form, and its alphabet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from qmodel.backends.bundle import read
from qmodel.conformance.graph import canonical, classes, costs, fields, plan
from qmodel.conformance.graph.alphabet import (
    READ_IN_PAIRS,
    START,
    TICK,
    Family,
    Moves,
    Scope,
    every_budget,
    every_failure,
    explored,
    families,
    letter,
    pair,
    scarce,
)
from qmodel.conformance.graph.compare import LuaCorner, with_units
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.findings import Explored, Finding
from qmodel.conformance.graph.record import Record
from qmodel.conformance.graph.server import ServerCorner
from qmodel.conformance.graph.shapes import Shapes
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.named import Opening
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.settings import OPTIONS
from qmodel.errors import LocalError
from qmodel.model import engine
from qmodel.model.copies import copy
from qmodel.model.state import uniques
from qmodel.model.state.store import Store

GROUPS = 6
"""How many parts the searches have. In each, one process compiles the library once, and executes a shape once."""

SEARCHES = [
    pytest.param(run, id=f"{run.family.name}-{run.scope}", marks=pytest.mark.xdist_group(f"graph {number % GROUPS}"))
    for number, run in enumerate(plan.gate())
]


NIGHTLY = [
    pytest.param(run, id=run.family.name, marks=pytest.mark.xdist_group(f"graph {number % GROUPS}"))
    for number, run in enumerate(one for one in plan.costed() if one.family.night)
]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerCorner]:
    with closing(ServerCorner(Opening("valkey").url())) as corner:
        yield corner


@pytest.mark.parametrize("run", SEARCHES)
def test_every_state_of_a_family_keeps_the_laws_and_equals_the_lua(run: plan.Run, server: ServerCorner) -> None:
    found = run.search(lua=True, server=server, pairs=0.01)
    assert [str(finding) for finding in found.findings] == []
    assert found.closed or found.edges >= run.edges
    assert found.states > 20


def test_the_server_is_set_to_a_state_that_it_has_left(server: ServerCorner) -> None:
    """Its counters are the same then, by which the library there tells that it knows the rest."""
    before, corner = Store(), LuaCorner()
    begun = [ops.Put("q", "V", "k", ""), ops.Pop("q", "X"), ops.Complete("V", 2), ops.Put("q", "A", "k", "")]
    for op in (*begun, ops.Pop("q", "X", request="f")):
        engine.step(before, START, op)
        corner.step(START, op)
    pop = ops.Pop("q", "Y", count=2, wait=True, request="h")
    after = copy(before)
    reply = engine.step(after, START, pop)
    for _ in range(4):
        assert server.differences(corner.keys(), START, pop, reply, before, after) == []


@pytest.mark.tester
@pytest.mark.parametrize("run", NIGHTLY)
def test_a_family_of_the_night_costs_what_the_table_says(run: plan.Run) -> None:
    assert [str(finding) for finding in run.search(lua=True).findings] == []


def test_the_table_of_costs_has_the_searches_whose_costs_are_compared_and_no_others() -> None:
    assert costs.recorded().keys() == {f"{run.family.name} {run.scope}" for run in plan.costed()}
    assert all(run in plan.costed() for run in plan.gate())
    assert {run.family.name for run in plan.costed()} == explored().keys()


# ---- the alphabet


def test_letters_name_every_operation_of_the_catalogue() -> None:
    letters = {one.text.partition("(")[0] for family in explored().values() for one in family.letters}
    assert {spec.cls.__name__ for spec in CATALOGUE.values()} <= letters


def test_letters_name_every_class_of_argument_or_a_reason_says_why_not() -> None:
    assert classes.unexplained() == set()
    assert classes.stale() == set()


def test_letters_and_setups_set_every_option_of_the_configuration() -> None:
    letters = [one.of({}) for family in explored().values() for one in family.letters if one.text[:9] == "ConfigSet"]
    setups = [op for family in explored().values() for op in family.setup]
    named = {op.option for op in [*letters, *setups] if isinstance(op, ops.ConfigSet)}
    assert OPTIONS.keys() <= named


def test_families_say_what_they_are_about() -> None:
    assert len(explored()) >= 16
    assert all(family.says.endswith(".") for family in families().values())


def test_a_pair_of_families_has_the_letters_of_both_but_for_common_reads() -> None:
    common = {one.text for name in ("looks", "glances") for one in families()[name].letters}
    both = {one.text for name in ("delays", "messages") for one in families()[name].letters}
    assert {one.text for one in pair("delays", "messages").letters} == both - common | READ_IN_PAIRS


def test_the_length_of_histories_counts_in_pairs_with_a_small_budget() -> None:
    small, usual = pair("again_retired", "budget"), pair("again_retired", "plain")
    assert "job.stages" in small.live and "job.stages" not in usual.live
    assert Search(small, Scope(1, 1), pairs=0.2, edges=plan.PAIR_EDGES).run().findings == []
    forgets = small._replace(live=small.live - {"job.stages"})
    assert Search(forgets, Scope(1, 1), pairs=0.2, edges=plan.PAIR_EDGES).run().findings


def test_every_search_of_the_night_begins() -> None:
    """Its setup has the usual budget: with that of the search, a step of it might be refused."""
    for run in plan.at_night():
        assert Search(run.family, run.scope, limit=1e-9).run().findings == []


@pytest.mark.parametrize(("name", "jobs"), [("moves/5", 2), ("failed_dependencies/8", 1), ("requests/5", 2)])
def test_what_counts_where_the_budget_is_small_is_in_the_form(name: str, jobs: int) -> None:
    """Which jobs were granted together, which edges a job was given, and the order of the ids of sub-requests."""
    (run,) = plan.chosen((name,), Scope(jobs, 1), 0, False)
    assert Search(run.family, run.scope, pairs=0.5, edges=1000).run().findings == []


def test_families_of_the_night_are_not_in_the_gate_and_in_no_pair() -> None:
    nightly = {name for name, family in explored().items() if family.night}
    searched = {run.family.name for run in plan.at_night()}
    assert nightly and nightly < searched and "plain/5" in searched
    assert not nightly & {run.family.name for run in plan.gate()}
    assert not any(nightly & set(name.split("+")) for name in searched if "+" in name)


def test_the_night_of_some_families_has_their_pairs_and_no_others() -> None:
    runs = plan.chosen(("lapses", "fair"), None, 0, True, 500)
    names = [run.family.name for run in runs]
    assert {"lapses", "fair", "fair/5", "lapses/5"} <= set(names)
    assert len([name for name in names if "+" in name]) == 2 * len(plan.daily()) - 3
    assert all("lapses" in name or "fair" in name for name in names)
    assert {run.edges for run in runs} == {500}
    assert [run.edges for run in plan.chosen(("lapses", "lapses+fair"), None, 0, False)] == [0, 0]


def test_searches_within_a_time_share_it_and_small_ones_leave_theirs_to_the_others() -> None:
    large, small = (plan.Run(explored()["fair"], plan.ONE, edges) for edges in (0, 100))
    shares = plan.within([large, small._replace(limit=2.0), small], 60.0)
    assert [(run.edges, round(run.limit)) for run in shares] == [(100, 2), (100, 30), (0, 60)]
    assert [run.limit for run in plan.within([large, small], 0.0)] == [plan.LEAST, plan.LEAST]


def test_a_letter_names_all_leased_jobs_with_their_tokens() -> None:
    family = Family("tried", "", (letter("CompleteMany(tuple(Complete(*one) for one in held))"),))
    store = Store()
    engine.step(store, START, ops.PutMany(tuple(ops.Put("q", jid, "k", "") for jid in "BAC")))
    for _ in range(2):
        engine.step(store, START, ops.Pop("q", "X"))
    (op,) = Moves(family, Scope(0, 1)).of(store, START)
    assert [one.jid for one in op.jobs] == ["B", "A"]
    assert engine.step(store, START, op) == ("complete", "complete")


def test_a_letter_with_a_cursor_goes_on_where_the_same_operation_without_one_ended() -> None:
    family = Family("tried", "", (letter("Search(queue='q', count=1, cursor=cursor)"),))
    store = Store()
    engine.step(store, START, ops.PutMany((ops.Put("q", "A", "k", ""), ops.Put("q", "B", "k", ""))))
    (op,) = Moves(family, Scope(2, 1)).of(store, START)
    assert [job.jid for job in engine.step(store, START, op).jobs] == ["B"]
    assert list(Moves(family, Scope(2, 1)).of(Store(), START)) == []


# ---- the canonical form


def test_the_canonical_form_says_of_every_field_how_it_stands() -> None:
    for cls, table in fields.FIELDS.items():
        names = set(getattr(cls, "_fields", ())) or set(cls.__slots__)  # type: ignore[attr-defined]
        assert table.keys() == names, cls


def _form(*steps: Operation, now: int = START, live: frozenset[str] = frozenset()) -> str:
    return _form_of(*(Step(now, op) for op in steps), live=live)


def _form_of(*steps: Step, live: frozenset[str]) -> str:
    store = Store()
    for step in steps:
        engine.step(store, *step)
    return canonical.Canonical(("A", "B"), ("X", "Y"), live, 1).of(store, steps[-1].now)


def test_names_and_moments_do_not_tell_states_apart() -> None:
    put, pop = ops.Put("q", "A", "k", ""), ops.Pop("q", "X")
    assert _form(put, pop) == _form(ops.Put("q", "B", "k", ""), ops.Pop("q", "Y"))
    assert _form(put, pop) == _form(put, pop, now=START + 7 * TICK)
    assert _form(put) != _form(put, pop)


def test_which_of_two_like_jobs_of_a_request_was_deleted_first_does_not_tell_states_apart() -> None:
    jobs = [(ops.Put("q", jid, "k", ""),) for jid in ("A", "B")]
    opened = (ops.RequestOpen("R", "q", 2), *(ops.RequestAdd("R", one) for one in jobs), ops.RequestClose("R"))
    one, other = ((*opened, ops.Cancel((jid,)), ops.RequestCancel("R")) for jid in ("A", "B"))
    assert _form(*one) == _form(*other)


def test_results_of_two_like_jobs_do_not_tell_states_apart_by_their_names() -> None:
    named = [ops.Put("q", jid, "k", "", depends=("C block one",)) for jid in ("A", "B")]
    ignored = [ops.Put("q", jid, "k", "", depends=("C ignore two",)) for jid in ("B", "A")]
    first = ops.Put("q", "C", "k", "")
    assert _form(first, named[0], ignored[0]) == _form(first, named[1], ignored[1])
    assert _form(first, named[0], ignored[0]) != _form(first, *named)


def test_the_length_of_a_failures_message_counts_only_where_texts_cost() -> None:
    popped = (ops.Put("q", "A", "k", "", retries=0), ops.Pop("q", "X"))
    one, other = ((*popped, ops.Fail("A", 2, "g", "m" * length)) for length in (1, 9000))
    assert _form(*one) == _form(*other)
    assert _form(*one, live=frozenset(("job.message",))) != _form(*other, live=frozenset(("job.message",)))


def test_a_lease_under_a_fresh_request_is_told_apart_from_one_without_only_where_entries_cost() -> None:
    put = ops.Put("q", "A", "k", "")
    fresh, other, none = ((put, ops.Pop("q", "X", request=request)) for request in ("fresh1", "fresh7", ""))
    assert _form(*fresh) == _form(*other) == _form(*none) != _form(put, ops.Pop("q", "X", request="g"))
    small = frozenset(("job.stages",))
    assert _form(*fresh, live=small) == _form(*other, live=small) != _form(*none, live=small)


def test_a_fresh_request_is_one_that_no_call_has_used() -> None:
    family = Family("tried", "", (letter("Pop('q', worker)"), letter("Pop('q', worker, request=fresh)")))
    store, found = Store(), list[str]()
    for jid in ("A", "B"):
        engine.step(store, START, ops.Put("q", jid, "k", ""))
        first, _ = Moves(family, Scope(1, 1)).of(store, START)
        found.append(first.request)  # type: ignore[attr-defined]
        engine.step(store, START, first)
    assert len(set(found)) == 2 and set(found) == store.workers["X"].grants.keys()


POPPED = ops.Pop("q", "X")
PARKS = [ops.ThrottleSet("t", concurrency=1), ops.Put("q", "A", "k", "", throttles=("t",)), POPPED]
PARKS += [ops.Put("q", "B", "k", "", throttles=("t",)), POPPED]
OPENS = [ops.ThrottleSet("t", rate=1, rate_ms=TICK), ops.ThrottleSet("v", rate=1, rate_ms=TICK)]
OPENS += [ops.Put("q", jid, "k", "", throttles=(jid[0],)) for jid in ("t1", "v1", "t2", "v2")]
MORE = ops.Put("q", "v3", "k", "", throttles=("v",))
FAIR = [ops.ConfigSet("fair", 1), ops.Put("q", "A", "k", "", fair_key="x"), ops.Put("q", "B", "k", "", fair_key="x")]
FIRST = ops.Priority("B", 0, first=True)
LATER = ops.Put("q", "C", "k", "", fair_key="y")
HELD = [ops.ThrottleSet("t", concurrency=1), ops.ThrottleSet("v", rate=1, rate_ms=TICK)]
HELD += [*(ops.Put("q", jid, "k", "", throttles=(jid,)) for jid in ("t", "v")), ops.Pop("q", "X", 2)]
GATED = [ops.Put("q", "A", "k", "", throttles=("t", "v")), ops.Put("q", "B", "k", "d", -1, throttles=("v",))]
WIDER = [ops.ThrottleSet("t", concurrency=2), POPPED]
RUNS = [ops.Recur("q", jid, "k", "", TICK, retries=0, limit=1) for jid in ("S", "T")]


@pytest.mark.parametrize(
    ("one", "other", "then"),
    [
        pytest.param(
            [*((0, op) for op in PARKS), (0, ops.Timeout(("A",), qless=True)), (TICK, ops.Length("q"))],
            [*((0, op) for op in PARKS), (TICK, ops.Timeout(("A",), qless=True))],
            [(TICK, POPPED)],
            id="a throttled job whose lease was timed out by the rules of qless, while another one is parked",
        ),
        pytest.param(
            [*((0, op) for op in (*OPENS, ops.Pop("q", "X", 9))), (TICK, ops.Length("q"))],
            [*((0, op) for op in (*OPENS, MORE, ops.Pop("q", "X", 9), ops.Cancel(("v3",)))), (TICK, ops.Length("q"))],
            [(TICK, POPPED)],
            id="two throttles that are due, one of them since another moment",
        ),
        pytest.param(
            [*((0, op) for op in FAIR), (TICK, FIRST)],
            [*((TICK, op) for op in FAIR), (TICK, FIRST)],
            [(TICK, LATER)],
            id="turns of another moment, while a job that was put first hides them",
        ),
        pytest.param(
            [(0, RUNS[0]), (0, RUNS[1])],
            [(0, RUNS[1]), (0, RUNS[0])],
            [(TICK, ops.Pop("q", "X"))],
            id="two recurring jobs that are due together, in another order",
        ),
        pytest.param(
            [(0, ops.RequestOpen("R", "q", 1, deadline_ms=2 * TICK)), (2 * TICK, POPPED)],
            [(TICK, ops.RequestOpen("R", "q", 1, deadline_ms=TICK)), (2 * TICK, POPPED)],
            [],
            id="a request that has ended, and had another time to end",
        ),
        pytest.param(
            [*((0, op) for op in (*HELD, GATED[0], POPPED, GATED[1], *WIDER))],
            [*((0, op) for op in (*HELD, *GATED, *WIDER))],
            [(0, ops.Priority("B", 0))],
            id="two parked jobs of different priorities, with turns in another order",
        ),
    ],
)
def test_states_that_one_operation_leads_to_different_states_have_different_forms(
    one: list[tuple[int, Operation]], other: list[tuple[int, Operation]], then: list[tuple[int, Operation]]
) -> None:
    live = frozenset(("queue.turns",))

    def form(*steps: tuple[int, Operation]) -> str:
        return _form_of(*(Step(START + at, op) for at, op in steps), live=live)

    assert form(*one, *then) != form(*other, *then)
    assert form(*one) != form(*other)


def _search(*letters: str, name: str = "tried", live: frozenset[str] = frozenset(), pairs: float = 1.0) -> Explored:
    family = Family(name, "", tuple(map(letter, letters)), live=live)
    return Search(family, Scope(1, 1), pairs=pairs).run()


PUT, POP = "Put('q', job, 'k', '', retries=1)", "Pop('q', worker)"


def test_a_canonical_form_that_forgets_what_counts_is_refuted() -> None:
    letters = (PUT, POP, "Clean('complete', tick)", "Complete(job, token)")
    forgets = _search(*letters)
    assert forgets.findings[0].what == "refuted canonical form"
    assert _search(*letters, live=frozenset({"job.ended_at"})).findings == []


# ---- each check can fail


def test_a_fault_of_the_lua_is_found_with_its_shortest_history() -> None:
    right, text = "  job.worker, job.grant = '', ''\n", read("ops/finish")
    assert right in text
    corner = LuaCorner({"ops/finish": text.replace(right, "  job.grant = ''\n")})
    found = Search(explored()["plain"], Scope(1, 1), corner).run()
    assert found.findings[0].what == "the Lua library differs from the model"
    assert len(found.findings[0].history) == 5  # two options, put, pop, and the step that shows it


def test_a_search_may_compare_only_some_operations_and_visits_the_same_states() -> None:
    right, text = "  job.worker, job.grant = '', ''\n", read("ops/finish")
    texts = {"ops/finish": text.replace(right, "  job.grant = ''\n")}
    family, scope = explored()["plain"], Scope(1, 1)
    assert Search(family, scope, LuaCorner(texts), compared={"complete", "fail", "retry"}).run().findings
    all_, none = Search(family, scope, LuaCorner()).run(), Search(family, scope, LuaCorner(), compared=()).run()
    assert (all_.states, all_.edges, all_.closed) == (none.states, none.edges, none.closed)
    assert not none.findings


def test_a_fault_of_the_lua_that_only_a_read_of_events_shows_is_found() -> None:
    right, text = "  return store.events_after(op.after, op.count)\n", read("ops/read")
    assert right in text
    corner = LuaCorner({"ops/read": text.replace(right, "  return store.events_after(op.after + 1, op.count)\n")})
    found = Search(explored()["plain"], Scope(1, 1), corner).run()
    assert found.findings[0].what == "the Lua library reads other events than the model"


def test_a_fault_of_the_lua_that_only_an_event_shows_is_found() -> None:
    right, text = "'canceled', job.jid, job.queue, job.state)", read("rules/deletion")
    assert right in text
    corner = LuaCorner({"rules/deletion": text.replace(right, "'canceled', job.jid, job.jid, job.state)")})
    found = Search(explored()["plain"], Scope(1, 1), corner).run()
    assert found.findings[0].lines[0].startswith("events")


def test_the_shorter_way_of_completing_is_taken_once_another_job_was_completed() -> None:
    right, text = "  stats.ran_one(now, name, ran, text, more)\n", read("ops/plain_complete")
    assert right in text
    texts = {"ops/plain_complete": text.replace(right, "")}
    assert Search(explored()["again"], Scope(1, 1), LuaCorner(texts)).run().findings
    assert not Search(explored()["plain"], Scope(1, 1), LuaCorner(texts)).run().findings


def test_a_fault_that_only_two_operations_in_one_call_show_is_found() -> None:
    right, text = "  return plain.answer_all(jids, texts, simulated)\n", read("ops/plain_put")
    assert right in text
    corner = LuaCorner({"ops/plain_put": text.replace(right, right.replace("(jids", "({jids[1], ''}"))})
    family = explored()["calls"]
    found = Search(family, plan.TWO, corner, edges=500).run()
    assert found.findings[0].what.startswith("the Lua library differs from the model after Put(")
    assert not Search(family._replace(calls=0), plan.TWO, corner, edges=500).run().findings


def test_a_fault_that_only_a_row_of_plain_operations_shows_is_found() -> None:
    right, text = "local two = redis.pcall('RPUSH', queue.runs_key, duration)", read("ops/bare")
    assert right in text
    corner = LuaCorner({"ops/bare": text.replace(right, right.replace("runs_key", "waits_key"))})
    family = explored()["rows"]
    family = family._replace(letters=tuple(one for one in family.letters if one.text == "Complete(run, token)"))
    found = Search(family, plan.ONE, corner, edges=500).run().findings
    assert found and found[0].what.startswith("the Lua library differs from the model after Complete(")
    assert not Search(family._replace(calls=0), plan.ONE, corner, edges=500).run().findings


def test_a_search_that_strays_visits_the_same_states() -> None:
    found = [Search(explored()["plain"], plan.ONE, edges=2000, strays=strays).run() for strays in (False, True)]
    assert all(one.closed and not one.findings for one in found)
    assert found[0].states == found[1].states and found[0].edges == found[1].edges


def test_a_search_that_strays_gets_further_in_as_many_edges() -> None:
    def last(strays: bool) -> int:
        search = Search(explored()["previewed_requests"], plan.ONE, edges=800, strays=strays)
        search.run()
        return max(map(search._now, range(len(search._steps))))

    assert last(True) > last(False)


def test_a_fault_of_the_budget_is_found_where_the_budget_is_small() -> None:
    right, text = "budget.afford(found, budget.weight, taken[1] ~= nil or closed > 0)", read("ops/pop")
    assert right in text
    texts = {"ops/pop": text.replace(right, "#found")}
    small = scarce("orders", 5)
    assert Search(small, plan.TWO, LuaCorner(with_units(texts, 5)), edges=plan.SCARCE_EDGES).run().findings
    assert not Search(explored()["orders"], plan.TWO, LuaCorner(texts), edges=plan.SCARCE_EDGES).run().findings


def test_a_fault_that_shows_at_one_budget_only_is_found_where_every_budget_is_tried() -> None:
    right = "and queues.lapsed(queue, now, catalogue.most, true) or {}"
    texts = {"ops/pop": read("ops/pop").replace(right, right.replace(", true", ""))}
    family, each = explored()["several_due"], every_budget("several_due")
    found = Search(each, plan.TWO, LuaCorner(texts), edges=plan.EACH_EDGES).run().findings
    assert found and "with a budget of" in found[0].what
    assert not Search(family, plan.TWO, LuaCorner(texts), edges=plan.SCARCE_EDGES).run().findings
    assert not Search(each, plan.TWO, LuaCorner(), edges=plan.SCARCE_EDGES).run().findings


def test_a_fault_of_a_millisecond_is_found_where_the_clock_goes_in_milliseconds() -> None:
    right, text = "return queues.load_some(key, until_(key, now, most), nil, 1)", read("state/queues")
    assert text.count(right) == 1
    corner = LuaCorner({"state/queues": text.replace(right, right.replace("now", "now + 1"))})
    family = explored()["milliseconds"]
    found = Search(family, plan.ONE, corner, edges=2_000).run().findings
    assert family.step == 1 and "Peek(" in str(found[0])
    assert not Search(explored()["delays"], plan.ONE, corner, edges=2_000).run().findings


LEAVES = "  if not said or not is_known(request, name, jid, klass, data) then\n"


def test_a_fault_that_only_makes_an_operation_dearer_is_found_by_the_table_of_costs() -> None:
    text, run = read("ops/plain_put"), next(one for one in plan.costed() if one.family.name == "plain_ways")
    assert LEAVES in text
    corner = LuaCorner({"ops/plain_put": text.replace(LEAVES, LEAVES.replace("not said", "request ~= '' or not said"))})
    found = Search(run.family, run.scope, corner, edges=run.edges).run()
    assert not found.findings
    (line,) = run.costs_otherwise(found)
    assert line.startswith("plain_ways 1x1: put took bare ") and ", and before bare " in line
    assert not run.costs_otherwise(run.search(lua=True))
    assert not run._replace(edges=run.edges - 1).costs_otherwise(found)


def test_costs_are_counted_by_the_way_that_an_operation_took() -> None:
    corner = LuaCorner()
    corner.begin()
    ways = []
    for op in (ops.Put("q", "A", "k", ""), ops.Put("q", "B", "k", ""), ops.Put("q", "C", "k", ""), ops.Pop("q", "X")):
        corner.step(START, op)
        ways.append(corner.cost(op.spec.name)[0])
    assert ways == ["verb", "plain", "bare", "verb"]
    corner.load(corner.keys())
    corner.step(START, ops.Put("q", "D", "k", ""))
    assert corner.cost("put") == ("plain", corner.keyspace.calls.total())


def test_a_fault_that_only_a_command_that_fails_shows_is_found() -> None:
    right, text = "  local left = begun and go_on() or undo()\n", read("state/writes")
    assert right in text
    corner = LuaCorner({"state/writes": text.replace(right, right.replace("undo()", "{}"))})
    found = Search(every_failure("plain"), plan.ONE, corner, edges=200).run().findings
    assert found and "after the failure of command" in found[0].what
    assert not Search(explored()["plain"], plan.ONE, corner, edges=200).run().findings
    assert not Search(every_failure("plain"), plan.ONE, LuaCorner(), edges=200).run().findings


def test_what_is_left_to_undo_of_one_key_is_done_in_order() -> None:
    right, text = "  return intent.try_all(commands)\nend\n", read("state/writes")
    wrong = "  local left = {}\n  for _, words in ipairs(commands) do\n"
    wrong += "    left[#left + 1] = intent.try(words) and words or nil\n"
    assert right in text
    corner = LuaCorner({"state/writes": text.replace(right, f"{wrong}  end\n  return left\nend\n")})
    family = every_failure("failed_dependencies")
    assert Search(family, plan.ONE, corner, edges=150).run().findings
    assert not Search(family, plan.ONE, LuaCorner(), edges=150).run().findings


def test_a_fault_that_only_a_command_that_fails_in_a_row_shows_is_found() -> None:
    right, text = "  if one ~= event or two ~= 1 then\n", read("ops/bare")
    assert right in text
    corner = LuaCorner({"ops/bare": text.replace(right, right.replace(" or two ~= 1", ""))})
    letters = tuple(one for one in explored()["rows"].letters if one.text.startswith("Put("))
    row = every_failure("rows")._replace(letters=letters)
    assert Search(row, plan.ONE, corner, edges=200).run().findings
    assert not Search(row, plan.ONE, LuaCorner(), edges=200).run().findings


def test_a_broken_invariant_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniques, "remove", lambda store, unique: None)
    found = Search(explored()["unique_pending"], Scope(1, 1)).run()
    assert found.findings[0].what == "broken invariant"


def test_a_refusal_that_changes_something_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    step = engine.step

    def careless(store: Store, now: int, op: Operation) -> Any:
        reply = step(store, now, op)
        if getattr(reply, "code", "") == "LOCK_LOST":
            store.workers_passed += 1
        return reply

    monkeypatch.setattr(engine, "step", careless)
    found = Search(explored()["plain"], Scope(1, 1)).run()
    assert found.findings[0].what == "changed although refused"


def test_jobs_that_can_never_end_are_found() -> None:
    found = _search(PUT, POP, "Complete(job, token)", "Pause(('q',))", pairs=0.0)
    assert found.findings[0].what.startswith("stuck")
    assert _search(PUT, POP, "Complete(job, token)", "Pause(('q',))", "Unpause(('q',))", pairs=0.0).findings == []


# ---- shapes, and the record


def test_the_histories_of_shapes_show_an_edge_of_each() -> None:
    corner, shapes, shown = LuaCorner(), Shapes(), Shapes()
    search = Search(explored()["plain"], Scope(1, 1), corner, shapes=shapes)
    search.run()
    histories = search.histories()
    for history in histories:
        corner.load({})
        for step in history:
            reply = corner.step(*step)
            shown.is_new(step.op, reply, corner.keyspace.touched)
            corner.load(corner.keys())
    assert shapes.seen <= shown.seen
    assert len(histories) < len(shapes.seen)


def test_a_recorded_search_is_not_repeated_unless_its_code_has_changed(tmp_path: Path) -> None:
    path, run = str(tmp_path / "record"), plan.Run(explored()["metadata"], Scope(1, 1))
    Record(path).add(run, run.search(lua=False))
    assert Record(path).has(run)
    assert not Record(path).has(run._replace(family=run.family._replace(letters=run.family.letters[1:])))
    assert not Record(path).has(run._replace(scope=Scope(1, 2)))
    assert not Record(None).has(run)


def test_a_recorded_search_is_repeated_if_it_was_compared_with_less(tmp_path: Path) -> None:
    path, run = str(tmp_path / "record"), plan.Run(explored()["metadata"], Scope(1, 1))
    Record(path).add(run, run.search(lua=False))
    assert Record(path).has(run) and not Record(path, "library").has(run)
    Record(path, "library", "valkey").add(run, run.search(lua=False))
    assert Record(path, "library").has(run) and Record(path, "library", "valkey").has(run)
    assert not Record(path, "library", "redis").has(run)


@pytest.mark.parametrize("line", ['{"code": "a", "fin', "[]", "{}", "\udcff"])
def test_a_line_that_is_no_search_is_named(tmp_path: Path, line: str) -> None:
    path, run = tmp_path / "record", plan.Run(explored()["metadata"], Scope(1, 1))
    Record(str(path)).add(run, run.search(lua=False))
    with path.open("ab") as file:
        file.write(line.encode(errors="surrogateescape"))
    with pytest.raises(LocalError, match=r"Line 2 of .* is no line of such a record. If it is the last line"):
        Record(str(path))


@pytest.mark.parametrize("name", ["plain/each", "plain/8", "plain/7", "plain+delays", "delays+plain"])
def test_the_night_of_a_search_is_that_search(name: str) -> None:
    assert [run.family.name for run in plan.chosen((name,), None, 0.0, night=True)] == [name]


def test_a_search_with_a_finding_is_repeated(tmp_path: Path) -> None:
    path, run = str(tmp_path / "record"), plan.Run(explored()["metadata"], Scope(1, 1))
    found = run.search(lua=False)
    found.findings.append(Finding("wrong", [], [Step(START, ops.Length("q"))]))
    Record(path).add(run, found)
    assert not Record(path).has(run)

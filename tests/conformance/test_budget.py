"""The budget of an operation (state/budget.py): with a small one, both sides stop at the same job."""

from __future__ import annotations

import pytest

from qmodel.backends import bundle
from qmodel.conformance.compare import runner
from qmodel.conformance.graph import budgets, tight
from qmodel.conformance.graph.compare import LuaCorner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.script import Named
from qmodel.conformance.subjects.base import ModelSubject, Step
from qmodel.conformance.subjects.lua import LuaSubject
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Result
from qmodel.model import engine
from qmodel.model.state import budget
from qmodel.model.state.store import Store
from tests.tester import share
from tools.mutation import suite

HISTORIES = 60
STEPS = 60


def few(count: int) -> int:
    """How many of `count` histories a run takes that is not of everything: a ninth, because each is executed twice."""
    return share(share(count))


def subject(units: int, block: int = budget.BLOCK) -> LuaSubject:
    """The library with another budget, and other blocks of text."""
    text = bundle.read("state/budget")
    small = text.replace(f"budget.UNITS = {budget.UNITS}", f"budget.UNITS = {units}")
    small = small.replace(f"budget.BLOCK = {budget.BLOCK}", f"budget.BLOCK = {block}")
    assert small != text
    return LuaSubject({"state/budget": small})


@pytest.mark.parametrize("units", suite.BUDGETS)
def test_both_sides_stop_at_the_same_job(units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./dev mutate` tries mutants of the model on these histories."""
    found = [named for one, named in suite.small() if one == units]
    small = subject(units)
    monkeypatch.setattr(budget, "UNITS", units)
    for named in found[:: len(found) // few(len(found))]:
        small.reset()
        assert runner.first_difference(named.steps, small) is None, named.name


def test_budgets_that_differ_by_one_unit_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative twin."""
    other = subject(9)
    monkeypatch.setattr(budget, "UNITS", 8)
    found = []
    for seed in range(HISTORIES):
        other.reset()
        found.append(runner.first_difference(runner.draw(RandomChooser(f"budget.8.{seed}"), STEPS), other))
    assert any(found)


@pytest.mark.parametrize(("units", "block"), [(40, 4), (300, 16)])
def test_both_sides_count_the_same_bytes(units: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks of a few bytes, a page ends elsewhere if one side counts another text."""
    small = subject(units, block)
    monkeypatch.setattr(budget, "UNITS", units)
    monkeypatch.setattr(budget, "BLOCK", block)
    for seed in range(few(HISTORIES)):
        drawn = runner.draw(RandomChooser(f"bytes.{units}.{seed}"), STEPS)
        pages = [Step(drawn[-1].now, ops.Journal(after, 1000)) for after in range(0, STEPS, 7)]
        history = [Step(drawn[0].now, ops.ConfigSet("journal", 1)), *drawn, *pages]
        small.reset()
        assert runner.first_difference(history, small) is None


@pytest.mark.parametrize("units", [3, 8])
def test_results_are_read_in_pages_that_both_sides_bound_alike(units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long results are kept apart in Lua: pages have them in the order of naming, and nothing is left at the end."""
    small = subject(units, 1000)
    monkeypatch.setattr(budget, "UNITS", units)
    monkeypatch.setattr(budget, "BLOCK", 1000)
    texts = ["x" * 1024, "é" * 600, "y" * 5000, "", "z" * 1025]
    puts = [ops.Put("q", f"j{i}", "k", "") for i in range(6)]
    waits = ops.Put("d", "d", "k", "", depends=tuple(f"j{5 - i} ignore n{i}" for i in range(6)))
    history = [Step(1, op) for op in (*puts, waits)]
    model = ModelSubject()
    for step in history:
        model.step(*step)
    for text in texts:
        pop = ops.Pop("q", "w", 1)
        (job,) = model.step(2, pop)
        end = ops.Complete(job.jid, job.token, text)
        assert model.step(3, end) == "complete"
        history += [Step(2, pop), Step(3, end)]
    again = ops.DependsOn("d", ("j1 ignore again", "j2 fail n3"))
    reads = [ops.Results("d", offset, count) for offset in range(7) for count in (1, 2, 3, 1000)]
    history += [Step(4, op) for op in (*reads, again, *reads, ops.Results("d"), ops.Cancel(("d",)))]
    assert runner.first_difference(history, small) is None
    small.reset()
    found = [small.step(*step) for step in history]
    shown = [one for page in found if isinstance(page, tuple) for one in page if isinstance(one, Result)]
    assert {one.result for one in shown} == set(texts)
    refused = [one for one in found if isinstance(one, Refusal)]
    assert {one.code for one in refused} == {"OVER_BUDGET"}


def test_the_leases_of_one_name_are_looked_at_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it a list of them is refused, and a count says how many there are at least."""
    small = subject(8)
    monkeypatch.setattr(budget, "UNITS", 8)
    asked = (ops.Worker("w"), ops.Search(worker="w"), ops.CancelMany(worker="w", preview=True))
    history = [Step(1, ops.Put("q", f"j{i}", "k", "")) for i in range(12)]
    history += [Step(2, ops.Pop("q", "w", 1, request=f"r{i}")) for i in range(9)]
    history += [Step(3, op) for op in (*asked, ops.Workers(), ops.Cancel(("j0",)), *asked, ops.Workers())]
    assert runner.first_difference(history, small) is None
    small.reset()
    *_, refused, found, canceled, (many,), _, held, first, _, (one,) = [small.step(*step) for step in history]
    for reply in (refused, found, canceled):
        assert isinstance(reply, Refusal)
        assert reply.facts[1:] == ("9", "8", "16")
    assert many.jobs == 9
    assert len(held.jobs) == one.jobs == 8
    assert [job.jid for job in first.jobs] == ["j1", "j2"]  # half of the units have gone to finding them


def test_a_failure_is_not_stopped_by_a_thousand_that_have_begun() -> None:
    """It cancels those that have not begun, however many others wait for their next try; then these go on."""
    history = [Step(1, ops.RequestOpen("R", "q", 1, fail_fast=True))]
    for part in range(3):
        puts = tuple(ops.Put("q", f"{part}:{n}", "k", "", retries=9) for n in range(400))
        history.append(Step(1, ops.RequestAdd("R", puts)))
    model = ModelSubject()
    for step in history:
        model.step(*step)
    pop = Step(1, ops.Pop("q", "w", 1))
    for tried in range(1100):
        (job,) = model.step(*pop)
        end = ops.Retry(job.jid, job.token, 1000) if tried < 1099 else ops.Fail(job.jid, job.token, "g", "m")
        model.step(1, end)
        history += [pop, Step(1, end)]
    history += [Step(1001, ops.Pop("q", "w", 1)) for _ in range(3)] + [Step(1001, ops.RequestGet("R"))]
    assert runner.first_difference(history, LuaSubject(), every=1000) is None
    model = ModelSubject()
    *_, known = [model.step(*step) for step in history]
    assert (known.reason, known.failed, known.canceled, known.pending, known.running) == ("failed", 1, 100, 1098, 1)


def tight_difference(named: Named, found: list[tight.Tight], corner: LuaCorner) -> list[str]:
    """Execute a history on the library, and some of its steps also with budgets that are too small."""
    corner.begin()
    store, chosen = Store(), {one.at: one.tried for one in found}
    for at, step in enumerate(named.steps[: max(chosen) + 1]):
        for tried in chosen.get(at, ()):
            with budgets.within(tried.units):
                corner.within(tried.units)
                lines = corner.differences(*step, tried.reply, store, tried.store)
            corner.undo()
            if lines:
                return [f"{named.name}, {step} with {tried.units} units", *lines]
        corner.within(budget.UNITS)
        engine.step(store, *step)
        corner.step(*step)
        corner.load(corner.keys())
    return []


def test_both_sides_do_the_same_with_every_budget_that_is_too_small() -> None:
    """`./dev mutate` tries mutants of the model on these steps."""
    corner, histories = LuaCorner(), suite.quick()
    found = list(tight.of(histories[:: len(histories) // few(len(histories))]))
    assert len(found) > 50
    for named, steps in found:
        assert tight_difference(named, steps, corner) == []


def test_a_unit_more_for_a_failure_differs_with_some_budget_that_is_too_small() -> None:
    """The negative twin."""
    text = bundle.read("state/budget")
    dearer = text.replace("budget.FAILURE = 2", "budget.FAILURE = 3")
    assert dearer != text
    corner = LuaCorner({"state/budget": dearer})
    assert any(tight_difference(named, steps, corner) for named, steps in tight.of(suite.generated(60)))

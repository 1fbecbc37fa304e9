"""The budget of an operation (state/budget.py): with a small one, both sides stop at the same job."""

from __future__ import annotations

import pytest

from qmodel.backends import bundle
from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import LuaSubject
from qmodel.contract import operations as ops
from qmodel.model.state import budget

HISTORIES = 60
STEPS = 60


def subject(units: int, block: int = budget.BLOCK) -> LuaSubject:
    """The library with another budget, and other blocks of text."""
    text = bundle.read("state/budget")
    small = text.replace(f"budget.UNITS = {budget.UNITS}", f"budget.UNITS = {units}")
    small = small.replace(f"budget.BLOCK = {budget.BLOCK}", f"budget.BLOCK = {block}")
    assert small != text
    return LuaSubject({"state/budget": small})


@pytest.mark.parametrize("units", [3, 8, 14, 30])
def test_both_sides_stop_at_the_same_job(units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small = subject(units)
    monkeypatch.setattr(budget, "UNITS", units)
    for seed in range(HISTORIES):
        history = runner.draw(RandomChooser(f"budget.{units}.{seed}"), STEPS)
        small.reset()
        assert runner.first_difference(history, small) is None


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
    for seed in range(HISTORIES):
        drawn = runner.draw(RandomChooser(f"bytes.{units}.{seed}"), STEPS)
        pages = [Step(drawn[-1].now, ops.Journal(after, 1000)) for after in range(0, STEPS, 7)]
        history = [Step(drawn[0].now, ops.ConfigSet("journal", 1)), *drawn, *pages]
        small.reset()
        assert runner.first_difference(history, small) is None

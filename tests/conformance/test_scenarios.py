"""The matrix: its files are current and complete, and every corner agrees to every scenario.

After a change of the model: `python -m qmodel.conformance.histories.matrix tests/conformance/scenarios`, and
read what changed.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from qmodel.conformance.compare import runner
from qmodel.conformance.compare.agree import agree
from qmodel.conformance.histories import matrix
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.subjects.base import Subject
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store

FOLDER = Path(__file__).with_name("scenarios")

of_the_whole_matrix = pytest.mark.xdist_group("matrix")
"""Marks a test that builds the matrix, which takes half a minute: one process runs all of these tests."""


@functools.cache
def _scenarios() -> dict[matrix.Cell, matrix.Scenario]:
    return matrix.scenarios()


@functools.cache
def _files() -> dict[str, str]:
    return matrix.files(_scenarios())


def test_there_is_a_file_for_every_operation() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CATALOGUE)


@of_the_whole_matrix
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_scenarios_of_an_operation_are_current_and_complete(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text == _files()[f"{name}.txt"]


@of_the_whole_matrix
def test_scenarios_read_back_as_they_were_written() -> None:
    for scenario in _scenarios().values():
        (found,) = matrix.parse(matrix.render(scenario)).values()
        assert found == list(scenario.history)


@of_the_whole_matrix
def test_every_name_and_every_sentence_is_unique_in_its_file() -> None:
    for name in CATALOGUE:
        mine = [s for cell, s in _scenarios().items() if cell.operation == name]
        assert len({s.name for s in mine}) == len({s.sentence for s in mine}) == len(mine)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_subject_agrees_to_every_scenario(name: str, subject: Subject) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    for history in matrix.parse(text).values():
        agree(subject, history)


def test_random_histories_find_no_cell_that_the_matrix_lacks() -> None:
    """Every outcome in random histories of the same kind is a cell of the matrix; its files list the cells."""
    listed = set()
    for name in CATALOGUE:
        for heading in matrix.parse((FOLDER / f"{name}.txt").read_text(encoding="utf-8")):
            where, _, outcome = heading.partition(": ")
            code = outcome.partition(" (")[0]
            listed.add((name, where, code if code.startswith("refused") else "done"))
    beyond = {"refused DEPENDENCY_LIMIT", "refused CANCEL_LIMIT"}
    found = 0
    for seed in range(400):
        store = Store()
        for now, op in runner.draw(RandomChooser(f"cells.{seed}"), 60):
            jid = getattr(op, "jid", None)
            where = matrix.situation(store, now, jid) if isinstance(jid, str) else ""
            where = "any" if op.spec.name in matrix.JOBLESS else where
            outcome = engine.step(store, now, op)
            refused = isinstance(outcome, Refusal)
            if not where or (refused and outcome.code == "BAD_ARGUMENT") or op.spec.reads:
                continue
            if getattr(op, "request", "") and not refused:
                continue  # a request that was answered before is answered in any situation
            what = f"refused {outcome.code}" if refused else "done"
            found += 1
            assert what in beyond or (op.spec.name, where, what) in listed, (op, where, what)
    assert found > 5000

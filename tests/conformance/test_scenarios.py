"""The matrix: its files are current and complete, and every corner agrees to every scenario.

The search takes half a minute, so it is done only if the code that decides what it finds has changed since the files
were written. The steps of the files are performed in any case.

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


@functools.cache
def _scenarios() -> dict[matrix.Cell, matrix.Scenario]:
    return matrix.read(FOLDER)


def _text(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_there_is_a_file_for_every_operation() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CATALOGUE)


def test_the_search_would_find_what_it_found() -> None:
    if not matrix.stamp(FOLDER).is_current():
        found = matrix.files(matrix.scenarios())
        assert {name: text for name, text in found.items() if text != _text(name.removesuffix(".txt"))} == {}


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_outcomes_of_the_scenarios_are_those_of_the_model(name: str) -> None:
    mine = {cell: scenario for cell, scenario in _scenarios().items() if cell.operation == name}
    assert _text(name) == matrix.files(mine)[f"{name}.txt"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_name_and_every_sentence_is_unique_in_its_file(name: str) -> None:
    lines = _text(name).splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("## ")]
    assert len({lines[at] for at in starts}) == len({lines[at + 1] for at in starts}) == len(starts) > 0


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_subject_agrees_to_every_scenario(name: str, subject: Subject) -> None:
    for history in matrix.parse(_text(name)).values():
        agree(subject, history)


def test_random_histories_find_no_cell_that_the_matrix_lacks() -> None:
    """Every outcome in random histories of the same kind is a cell of the matrix; its files list the cells."""
    listed = set()
    for name in CATALOGUE:
        for heading in matrix.parse(_text(name)):
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

"""Historical faults against the closed graph alone: without generated and directed histories, it notices them."""

from __future__ import annotations

import pytest

from qmodel.backends.bundle import read
from qmodel.conformance.graph import plan
from tests.conformance.test_historical_faults import LUA, MODEL, Fault, patched
from tools.mutation import model, python

pytestmark = pytest.mark.tester

MISSED: dict[str, str] = {}
"""Faults that the graph does not notice, and why."""


@pytest.mark.parametrize("fault", MODEL, ids=lambda fault: f"{fault.source} {fault.says}")
def test_a_historical_fault_of_the_model_is_noticed_by_the_graph(fault: Fault) -> None:
    with model.planted(fault.file, patched(python.read(fault.file), fault)[fault.file]) as bad:
        found = bad or plan.hunt()
    assert (found is None) == (fault.source in MISSED)


@pytest.mark.parametrize("fault", LUA, ids=lambda fault: f"{fault.source} {fault.says}")
def test_a_historical_fault_of_the_library_is_noticed_by_the_graph(fault: Fault) -> None:
    assert (plan.hunt(patched(read(fault.file), fault)) is None) == (fault.source in MISSED)


def test_hardly_any_fault_is_missed() -> None:
    assert len(MISSED) <= (len(MODEL) + len(LUA)) * 5 // 100
    assert set(MISSED) <= {fault.source for fault in (*MODEL, *LUA)}

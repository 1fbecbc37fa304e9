"""The closed graph: every family in the scopes of the gate, the canonical form, and the alphabet."""

from __future__ import annotations

import pytest

from qmodel.conformance.graph import plan
from qmodel.conformance.graph.alphabet import Scope, explored

SEARCHES = plan.gate()


@pytest.mark.parametrize("run", SEARCHES, ids=[f"{run.family.name}-{run.scope}" for run in SEARCHES])
def test_every_state_of_a_family_keeps_the_laws_and_equals_the_lua(run: plan.Run) -> None:
    found = run.search(lua=True, pairs=0.01)
    assert [str(finding) for finding in found.findings] == []
    assert found.closed
    assert found.states > 20


def test_families_have_names_that_say_what_they_are_about() -> None:
    assert len(explored()) >= 16
    assert all(family.says.endswith(".") for family in explored().values())
    assert all(Scope(0, 1) <= family.scope for family in explored().values())

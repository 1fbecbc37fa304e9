"""Historical faults against the closed graph alone, without generated and directed histories.

Only faults that were tried stand here. A fault that needs one job is noticed within seconds.
"""

from __future__ import annotations

import pytest

from qmodel.conformance.graph import plan
from tests.conformance.test_historical_faults import MODEL, Fault, patched
from tools.mutation import model, python

pytestmark = pytest.mark.tester

TRIED = ("Q2", "Q3", "Q3b", "Q4", "Q5", "Q6", "Q9b", "Q10", "Q11", "Q13", "Q15")
"""The faults that the graph noticed when they were tried. Q7 and Q8 need two jobs, and more than nine seconds."""

FAULTS = [fault for fault in MODEL if fault.source in TRIED]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.source} {fault.says}")
def test_a_historical_fault_of_the_model_is_noticed_by_the_graph(fault: Fault) -> None:
    with model.planted(fault.file, patched(python.read(fault.file), fault)[fault.file]) as bad:
        assert bad or plan.hunt() is not None

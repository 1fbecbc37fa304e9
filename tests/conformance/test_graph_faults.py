"""Historical faults against the closed graph alone, without generated and directed histories."""

from __future__ import annotations

import pytest

from qmodel.backends.bundle import read
from qmodel.conformance.graph.alphabet import Scope, explored
from qmodel.conformance.graph.compare import LuaCorner
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.plan import ONE, TWO
from tests.conformance.test_historical_faults import LUA, MODEL, Fault, patched
from tools.mutation import model, python

pytestmark = pytest.mark.tester

NOTICED = {
    ("plain", ONE): (
        "Q2",
        "Q3",
        "Q3b",
        "Q10",
        "Q13",
        "Q13b",
        "Q15",
        "Q22",
        "Q32",
        "Q35",
        "F1",
        "F2",
        "M8",
        "M9",
        "M12",
        "M18",
    ),
    ("delays", ONE): ("Q9b", "M1", "M14", "M15"),
    ("orders", ONE): ("F3",),
    ("complete_and_pop_on", ONE): ("Q6",),
    ("moves", ONE): ("Q4", "Q5"),
    ("bulk", TWO): ("Q10b", "Q10c"),
    ("depends", TWO): ("Q7", "Q8", "Q9", "Q25", "Q26"),
    ("fans", Scope(3, 1)): ("Q37",),
    ("concurrency", ONE): ("Q14",),
    ("waits", ONE): ("F8", "F10"),
    ("workers", Scope(1, 2)): ("Q34",),
    ("pauses", ONE): ("M6", "M7"),
    ("resends", ONE): ("resend", "late worker"),
    ("tags", ONE): ("Q11", "Q23", "retention"),
    ("texts", ONE): ("Q28", "Q36", "F14"),
    ("days", ONE): ("Q5b", "Q33"),
    ("history", ONE): ("Q20",),
}
"""Which family notices a fault, and in which scope."""

UNNOTICED = {"F13": "no client writes such a number: it is a fault of texts that only a raw call has"}

WHERE = {source: where for where, sources in NOTICED.items() for source in sources}

FAULTS = [("model", fault) for fault in MODEL] + [("lua", fault) for fault in LUA]


def test_every_historical_fault_is_noticed_by_a_family_or_a_reason_says_why_not() -> None:
    assert {fault.source for _, fault in FAULTS} == WHERE.keys() | UNNOTICED.keys()
    assert len(UNNOTICED) <= 0.05 * len(FAULTS)


@pytest.mark.parametrize(
    ("side", "fault"),
    [(side, fault) for side, fault in FAULTS if fault.source not in UNNOTICED],
    ids=lambda one: one if isinstance(one, str) else f"{one.source} {one.says}",
)
def test_a_historical_fault_is_noticed_by_the_graph(side: str, fault: Fault) -> None:
    name, scope = WHERE[fault.source]
    if side == "lua":
        search = Search(explored()[name], scope, LuaCorner(patched(read(fault.file), fault)), edges=20_000)
        assert search.run().findings
        return
    with model.planted(fault.file, patched(python.read(fault.file), fault)[fault.file]) as bad:
        assert bad or Search(explored()[name], scope, LuaCorner(), edges=20_000).run().findings

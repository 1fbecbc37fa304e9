"""The moment until which an idle worker sleeps."""

from __future__ import annotations

import time
from typing import Any

import pytest

from qmodel.worker.bell import Bell


def test_the_servers_time_goes_on_between_two_notes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is noted as seen once a second: what is read in between is old, now less and now more."""
    nothing: Any = None
    bell = Bell(nothing, ["q"], "me", lambda: None)
    told = [(0.0, 5000), (0.4, 5000), (1.1, 6050), (1.9, 6050), (2.0, 6050), (3.0, 905_000), (4.0, 7000)]
    found = []
    for passed, seen_at in told:
        monkeypatch.setattr(time, "monotonic", lambda passed=passed: 100 + passed)
        found.append(round(bell._now(seen_at)))
    assert found == [5000, 5400, 6100, 6900, 7000, 905_000, 7000]

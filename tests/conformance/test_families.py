"""A family with more parked jobs than one call looks at: the Lua library does what the model does."""

from __future__ import annotations

from typing import Any

from qmodel.backends import open_backend
from qmodel.contract import operations as ops

THROTTLES = 1001
FAMILY = "tenant-*"


def test_new_limits_of_a_family_are_seen_by_a_thousand_places_at_once_and_by_others_when_a_job_ends() -> None:
    sides = [open_backend("memory://"), open_backend("embedded://")]
    now = 10**12

    def do(op: ops.Operation) -> Any:
        nonlocal now
        now += 1
        one, other = (side.execute(op, now) for side in sides)
        assert one == other, op
        return one

    def put(round: int) -> None:
        jobs = [ops.Put("q", f"{round}-{at}", "K", "", throttles=(f"tenant-{at}",)) for at in range(THROTTLES)]
        for part in (jobs[:500], jobs[500:]):
            do(ops.PutMany(tuple(part)))

    def popped() -> list[Any]:
        found: list[Any] = []
        while jobs := do(ops.Pop("q", "w", 200)):
            found += jobs
        return found

    do(ops.ThrottleSet(FAMILY, concurrency=1))
    put(1)
    first = popped()
    put(2)
    assert len(first) == THROTTLES and popped() == popped() == []
    assert do(ops.Queue("q")).throttled == THROTTLES
    do(ops.ThrottleSet(FAMILY, concurrency=2))
    assert len(popped()) == THROTTLES - 1
    for job in first:
        do(ops.Complete(job.jid, job.token))
    assert len(popped()) == 1

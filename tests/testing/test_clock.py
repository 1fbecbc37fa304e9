"""A clock that the test advances, on the model and on a real server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

import qmodel
from qmodel.client.sync import Job
from qmodel.testing import Drained, Harness, VirtualClock

START = datetime(2026, 3, 2, 8, tzinfo=UTC)

pytestmark = pytest.mark.qmodel(start=START)


def test_the_clock_stands_still_until_it_is_advanced(qm_clock: VirtualClock) -> None:
    assert qm_clock.time == START
    qm_clock.advance(timedelta(minutes=1), hours=1, seconds=0.5)
    assert qm_clock.time == START + timedelta(hours=1, minutes=1, milliseconds=500)
    qm_clock.advance_to(datetime(2026, 3, 3))
    assert qm_clock.time == datetime(2026, 3, 3, tzinfo=UTC)


def test_a_clock_does_not_go_back(qm_clock: VirtualClock) -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        qm_clock.advance(-1)
    assert qm_clock.time == START


def test_every_operation_happens_at_its_time(qm_any: Harness) -> None:
    job = qm_any.client.queues["q"].put("K", delay=60)
    assert (job.put_at, job.ready_at) == (START, START + timedelta(minutes=1))
    assert qm_any.client.queues["q"].pop() is None
    qm_any.clock.advance(minutes=1)
    popped = qm_any.client.queues["q"].pop()
    assert popped is not None
    assert popped.expires_at == START + timedelta(minutes=2)


class Notes:
    """Performs jobs, and records which and when."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.noted: list[tuple[str, str]] = []

    def __call__(self, job: Job) -> None:
        self.noted.append((job.klass, f"{self.clock.time:%H:%M}"))


def test_what_becomes_due_is_performed_in_order_of_time(qm_any: Harness) -> None:
    notes = Notes(qm_any.clock)
    qm_any.perform_by(notes)
    slow, fast = qm_any.client.queues["slow"], qm_any.client.queues["fast"]
    slow.put("Half", delay=1800)
    fast.put("Now")
    fast.put("Quarter", delay=900)
    slow.recur("Every", interval=1200, offset=600, jid="every")
    with qm_any.worker() as done:
        qm_any.clock.advance(hours=1)
    wanted = [("Now", "08:00"), ("Every", "08:10"), ("Quarter", "08:15"), ("Every", "08:30"), ("Half", "08:30")]
    assert sorted(notes.noted, key=lambda one: (one[1], one[0])) == [*wanted, ("Every", "08:50")]
    assert [when for _, when in notes.noted] == sorted(when for _, when in notes.noted)
    assert done.completed == 6


def test_a_year_of_cron_passes_at_once_and_in_its_time_zone(qm: Harness) -> None:
    notes = Notes(qm.clock)
    qm.perform_by(notes)
    qm.client.queues["q"].recur("Report", cron="0 9 * * 1", tz="Europe/Berlin", jid="report", missed="none")
    with qm.worker() as done:
        qm.clock.advance(days=365)
    assert done.completed == 52
    assert {when for _, when in notes.noted} == {"08:00", "07:00"}  # winter, and summer


def test_without_a_worker_runs_are_made_and_not_performed(qm_any: Harness) -> None:
    qm_any.client.queues["q"].recur("Every", {"n": 1}, interval=600, jid="every")
    qm_any.clock.advance(minutes=30)
    runs = qm_any.all_enqueued("Every")
    assert [job.ready_at for job in runs] == [START + timedelta(minutes=m) for m in (0, 10, 20, 30)]


def test_a_lease_runs_out_and_somebody_else_gets_the_job(qm_any: Harness) -> None:
    queue = qm_any.client.queues["q"]
    queue.put("K")
    first = queue.pop(worker="first")
    assert first is not None
    qm_any.clock.advance(seconds=70)
    second = queue.pop(worker="second")
    assert second == first
    with pytest.raises(qmodel.LockLost):
        first.complete()


def test_a_job_that_takes_longer_than_its_lease_is_lost(qm_any: Harness) -> None:
    def slow(job: Job) -> None:
        qm_any.clock.advance(minutes=10)
        assert qm_any.client.queues["q"].pop(worker="another") == job

    qm_any.perform_by(slow)
    qm_any.client.queues["q"].put("K")
    assert qm_any.drain_queue() == Drained(lost=1)


def test_an_expired_job_fails_when_the_clock_has_passed_it(qm_any: Harness) -> None:
    job = qm_any.client.queues["q"].put("K", ttl=60)
    qm_any.clock.advance(minutes=2)
    assert job.refresh().state == "failed"
    qm_any.assert_enqueued("K", states="failed")


def test_a_job_whose_time_comes_between_a_pop_and_the_sleep_is_not_overslept(
    qm: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmodel.client.sync.LONGEST_SLEEP", 3000.0)
    qm.client.queues["q"].put("K", delay=60)
    asked = qm.client._next_at

    def next_at(queues: Sequence[str]) -> int:
        qm.clock.advance(minutes=1)
        return asked(queues)

    qm.client._next_at = next_at  # type: ignore[method-assign]
    assert qm.client.queues["q"].pop(timeout=3600) is not None


async def test_an_event_loop_performs_what_becomes_due() -> None:
    noted = []

    async def perform(job: Job) -> str:
        noted.append(job.klass)
        return job.klass.lower()

    async with Harness(perform=perform) as qm:
        job = await qm.aclient.queues["q"].put("Later", delay=60)
        async with qm.worker() as done:
            await qm.clock.aadvance(minutes=1)
        assert (done.completed, noted, await job.wait()) == (1, ["Later"], "later")

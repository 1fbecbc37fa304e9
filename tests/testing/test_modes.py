"""Draining, the modes inline and manual, and waiting for results in them."""

from __future__ import annotations

import threading

import pytest

import qmodel
from qmodel.client.sync import Job
from qmodel.testing import Drained, Harness, NeverEmpty, NobodyPerforms, WouldWait


def add(job: Job) -> int:
    """Perform Add, and fail for values that cannot be added."""
    return int(sum(job.data))


def test_a_drained_queue_has_performed_what_was_ready(qm_any: Harness) -> None:
    qm_any.perform_by({"Add": add})
    ready, later = (
        qm_any.client.queues["sums"].put("Add", [1, 2]),
        qm_any.client.queues["sums"].put("Add", [3], delay=60),
    )
    bad = qm_any.client.queues["sums"].put("Add", ["no"])
    assert qm_any.drain_queue("sums") == Drained(completed=1, failed=1)
    assert (ready.wait(), later.refresh().state) == (3, "scheduled")
    assert bad.refresh().failure is not None
    assert qm_any.drain_queue("other") == Drained()
    assert qm_any.drain_queue(with_scheduled=30) == Drained()
    assert qm_any.drain_queue(with_scheduled=30) == Drained(completed=1)


def test_what_becomes_ready_by_a_job_is_drained_as_well() -> None:
    def chain(job: Job) -> None:
        if job.data:
            qm.client.queues["q"].put("Chain", job.data - 1, delay=5)

    with Harness(perform=chain) as qm:
        qm.client.queues["q"].put("Chain", 3)
        assert qm.drain_queue().completed == 1
        before = qm.clock.now()
        assert qm.drain_queue(with_scheduled=True).completed == 3
        assert qm.clock.now() - before == 15_000


def test_without_safety_the_exception_leaves_and_is_recorded(qm_any: Harness) -> None:
    qm_any.perform_by(add)
    job = qm_any.client.queues["q"].put("Add", ["no"])
    with pytest.raises(TypeError):
        qm_any.drain_queue(with_safety=False)
    assert job.refresh().state == "failed"


def test_what_recurs_does_not_keep_a_drain_going() -> None:
    with Harness(perform=lambda job: None) as qm:
        qm.client.queues["q"].recur("Every", interval=60, offset=60)
        qm.client.queues["q"].put("Once", delay=90)
        assert qm.drain_queue(with_scheduled=True) == Drained(completed=2)


def test_a_queue_that_never_empties_is_told() -> None:
    with Harness(perform=lambda job: qm.client.queues["q"].put("Again") and None) as qm:
        qm.client.queues["q"].put("Again")
        with pytest.raises(NeverEmpty, match="Again in q"):
            qm.drain_queue()


def test_a_klass_that_nobody_performs_is_told_and_given_back(qm: Harness) -> None:
    job = qm.client.queues["q"].put("Odd")
    with pytest.raises(NobodyPerforms, match="Nothing here performs Odd"):
        qm.drain_queue()
    assert job.refresh().state == "waiting"


def test_an_async_function_needs_an_event_loop() -> None:
    async def perform(job: Job) -> None: ...

    with Harness(perform=perform) as qm:
        qm.client.queues["q"].put("K")
        with pytest.raises(TypeError, match="adrain_queue"):
            qm.drain_queue(with_safety=False)


# ---- inline


def test_inline_a_put_performs_and_gives_the_result(qm_any: Harness) -> None:
    qm_any.perform_by(add)
    qm_any.mode = "inline"
    queue = qm_any.client.queues["q"]
    assert queue.put("Add", [1, 2]).wait() == 3
    first = queue.put("Add", [1], delay=60)
    second = queue.put("Add", [2], depends=first)
    assert (first.state, second.state) == ("scheduled", "depends")
    qm_any.clock.advance(minutes=1)
    assert (first.wait(), second.wait()) == (1, 2)


def test_inline_a_failure_is_raised_where_the_job_is_put() -> None:
    with Harness(mode="inline", perform=add) as qm:
        with pytest.raises(TypeError) as failed:
            qm.client.queues["q"].put("Add", ["no"], jid="bad")
        assert "performed inline" in failed.value.__notes__[0]
        assert qm.client.jobs["bad"].state == "failed"


def test_inline_a_job_that_a_job_puts_follows_it_unless_it_is_waited_for() -> None:
    noted = []

    def perform(job: Job) -> str:
        noted.append(f"{job.klass} begins")
        if job.klass == "Parent":
            child = qm.client.queues["q"].put("Child")
            if job.data:
                noted.append(child.wait())
        noted.append(f"{job.klass} ends")
        return job.klass

    with Harness(mode="inline", perform=perform) as qm:
        qm.client.queues["q"].put("Parent")
        assert noted == ["Parent begins", "Parent ends", "Child begins", "Child ends"]
        noted.clear()
        qm.client.queues["q"].put("Parent", True)
        assert noted == ["Parent begins", "Child begins", "Child ends", "Child", "Parent ends"]


def test_inline_who_takes_jobs_by_hand_gets_them() -> None:
    with Harness(perform=add) as qm:
        queue = qm.client.queues["q"]
        queue.put("Add", [1])
        queue.put("Add", [2])
        with qm.testing_mode("inline"):
            taken = queue.pop()
            assert taken is not None
            assert queue.counts.waiting == 1
            taken.complete()
            assert queue.counts.waiting == 0


async def test_inline_works_in_an_event_loop() -> None:
    async def perform(job: Job) -> int:
        return int(sum(job.data))

    async with Harness(mode="inline", perform=perform) as qm:
        job = await qm.aclient.queues["q"].put("Add", [1, 2])
        assert await job.wait() == 3
        with pytest.raises(TypeError):
            await qm.aclient.queues["q"].put("Add", ["no"])


# ---- waiting


def test_who_would_wait_for_ever_is_told_at_once(qm_any: Harness) -> None:
    job = qm_any.client.queues["q"].put("K")
    with pytest.raises(WouldWait, match="it is waiting, and in the mode manual no worker performs it"):
        job.wait()
    with pytest.raises(qmodel.NotEnded):
        job.wait(timeout=60)
    taken = qm_any.client.queues["q"].pop()
    assert taken is not None
    taken.complete(7)
    assert job.wait() == 7


async def test_who_would_await_for_ever_is_told_at_once() -> None:
    async with Harness() as qm:
        job = await qm.aclient.queues["q"].put("K", delay=5)
        with pytest.raises(WouldWait, match=r"clock\.advance makes it ready"):
            await job.wait()


@pytest.mark.qmodel(mode="live")
def test_live_others_perform(qm_any: Harness) -> None:
    queue = qm_any.client.queues["q"]

    def work() -> None:
        taken = queue.pop(timeout=60)
        assert taken is not None
        taken.complete("done")

    thread = threading.Thread(target=work)
    thread.start()
    job = queue.put("K", delay=60)
    qm_any.clock.advance(minutes=1)
    assert job.wait(timeout=60) == "done"
    thread.join()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="'eager' is no mode"):
        Harness(mode="eager")  # type: ignore[arg-type]

"""Waiting for results: before, during and after the end, by many at once, on every backend."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence

import pytest

import qmodel
from qmodel.client.outcomes import ENDS, Waiter, Watch
from qmodel.contract import operations as ops
from qmodel.contract.events import EVENTS, Event
from qmodel.contract.replies import Job, Newest
from qmodel.errors import JobNotFound, QmodelError

PATIENCE = 60


@pytest.fixture(params=["given", "embedded"])
def shared_url(request: pytest.FixtureRequest, client_url: str) -> str:
    """A URL under which two clients see the same jobs."""
    if request.param == "embedded":
        if client_url != "memory://":
            pytest.skip("once is enough")
        return f"embedded://{time.monotonic_ns()}"
    return f"memory://{time.monotonic_ns()}" if client_url == "memory://" else client_url


def until(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


# ---- what a job ends with


def test_who_comes_after_the_end_gets_the_result_at_once(client: qmodel.Client) -> None:
    queue = client.queues["q"]
    job = queue.put("K")
    queue.pop().complete({"sum": 3})  # type: ignore[union-attr]
    other = queue.put("K")
    queue.pop().complete()  # type: ignore[union-attr]

    assert job.wait(0) == {"sum": 3}
    assert job.state == "complete"
    assert client.wait([other, job.jid, other], 0) == [None, {"sum": 3}, None]
    assert client.wait([]) == []


def test_a_job_without_a_result_raises_what_became_of_it(client: qmodel.Client) -> None:
    queue = client.queues["q"]
    failed, running = queue.put("K", jid="f"), queue.put("K", jid="r")
    taken = queue.pop()
    assert taken is not None
    taken.fail("broken", "no paper")

    with pytest.raises(qmodel.JobFailed, match="no paper") as caught:
        failed.wait()
    assert (caught.value.jid, caught.value.group, caught.value.message) == ("f", "broken", "no paper")
    with pytest.raises(TimeoutError) as late:
        running.wait(0.01)
    assert isinstance(late.value, qmodel.NotEnded)
    running.cancel()
    with pytest.raises(qmodel.JobNotFound):
        running.wait()
    queue.put("K", jid="r")
    kinds = [type(one) for one in client.wait(["f", "r", "nobody"], 0.01)]
    assert kinds == [qmodel.JobFailed, qmodel.NotEnded, qmodel.JobNotFound]


def test_a_bad_id_is_refused_and_disturbs_nobody(client: qmodel.Client) -> None:
    with pytest.raises(qmodel.BadArgument):
        client.wait(["no blanks"])


def test_a_failure_says_whether_it_was_revoked_or_expired(client: qmodel.Client) -> None:
    queue = client.queues["q"]
    for jid, group in (("x", "expired-q"), ("y", "revoked-q"), ("z", "revoked-r")):
        queue.put("K", jid=jid)
        queue.pop().fail(group)  # type: ignore[union-attr]

    kinds = [type(one) for one in client.wait(["x", "y", "z"])]
    assert kinds == [qmodel.JobExpired, qmodel.JobRevoked, qmodel.JobFailed]


def test_a_result_that_is_not_json_is_an_error_of_its_own(client: qmodel.Client) -> None:
    job = client.queues["q"].put("K")
    taken = client.queues["q"].pop()
    assert taken is not None
    client.execute(ops.Complete(job.jid, taken.token, "{"))

    with pytest.raises(qmodel.DataError):
        job.wait()
    assert job.result_text == "{"


# ---- who waits while it ends


def waiting(client: qmodel.Client, count: int = 1) -> None:
    """Wait until so many wait by a client, and one of them follows the events."""
    until(lambda: len(client._results._watch._waiters) >= count and client._results._watch._leader)


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Do something in a thread, and keep what it gives or raises."""
    kept: list[object] = []

    def run() -> None:
        try:
            kept.append(call())
        except QmodelError as error:
            kept.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, kept


def test_who_waits_is_woken_by_each_way_to_end(shared_url: str) -> None:
    client, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    queue = other.queues["q"]
    kept = []
    for jid, end in (
        ("a", lambda: queue.pop().complete(1)),  # type: ignore[union-attr]
        ("b", lambda: queue.pop().fail("g", "m")),  # type: ignore[union-attr]
        ("c", lambda: other.jobs.cancel("c")),
        ("d", lambda: (queue.pop().retry(), queue.pop().complete(4))),  # type: ignore[union-attr]
        ("e", lambda: (queue.pop().complete(next="q"), queue.pop().complete(5))),  # type: ignore[union-attr]
        ("f", queue.drain),
    ):
        job = client.queues["q"].put("K", jid=jid)
        thread, found = in_thread(lambda job=job: job.wait(PATIENCE))  # type: ignore[misc]
        waiting(client)
        end()  # type: ignore[no-untyped-call]
        thread.join(PATIENCE)
        kept += found

    assert [kept[0], kept[3], kept[4]] == [1, 4, 5]
    assert [type(one).__name__ for one in (kept[1], kept[2], kept[5])] == ["JobFailed", "JobCanceled", "JobCanceled"]
    assert client._results._watch._by_key == {}


def test_a_job_that_was_canceled_and_put_again_is_waited_for(shared_url: str) -> None:
    client, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    job = client.queues["q"].put("K", jid="a")
    thread, kept = in_thread(lambda: job.wait(PATIENCE))
    waiting(client)
    other.jobs.cancel("a")
    other.queues["q"].put("K", jid="a")
    other.queues["q"].pop().complete("second")  # type: ignore[union-attr]
    thread.join(PATIENCE)

    assert kept == ["second"] or isinstance(kept[0], qmodel.JobCanceled)  # seen in between, or not


def test_a_result_that_is_deleted_at_once_is_not_waited_for_in_vain(shared_url: str) -> None:
    client, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    client.config["jobs-history-count"] = 0
    job = client.queues["q"].put("K")
    thread, kept = in_thread(lambda: job.wait(PATIENCE))
    waiting(client)
    other.queues["q"].pop().complete("lost")  # type: ignore[union-attr]
    thread.join(PATIENCE)

    assert [type(one) for one in kept] == [qmodel.ResultNotKept]
    assert "jobs-history" in str(kept[0])


def test_who_waits_misses_nothing_when_events_are_dropped_unread(shared_url: str) -> None:
    client, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    client.config["max-events"] = 1
    jobs = [client.queues["q"].put("K", number) for number in range(40)]
    thread, kept = in_thread(lambda: client.wait(jobs, PATIENCE))
    waiting(client)
    other.complete_many((job, job.data) for job in other.queues["q"].pop(40))
    thread.join(PATIENCE)

    assert kept == [list(range(40))]


def test_the_next_one_follows_the_events_when_the_first_one_leaves(shared_url: str) -> None:
    client, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    jobs = [client.queues["q"].put("K", number) for number in range(3)]
    threads = []
    for number, job in enumerate(jobs):
        threads.append(in_thread(lambda job=job: job.wait(PATIENCE)))  # type: ignore[misc]
        waiting(client, number + 1)
    impatient = in_thread(lambda: jobs[2].wait(0.05))
    impatient[0].join(PATIENCE)
    for number in range(3):
        other.queues["q"].pop().complete(number)  # type: ignore[union-attr]
        threads[number][0].join(PATIENCE)

    assert [kept for _, kept in threads] == [[0], [1], [2]]
    assert isinstance(impatient[1][0], qmodel.NotEnded)


def test_a_thousand_who_wait_share_one_follower(shared_url: str) -> None:
    client, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    jobs = client.queues["q"].put_many([("K", number) for number in range(1000)])
    follows = []
    sleep = client.backend.wait_events

    def counted(after: int, timeout: float) -> bool:
        follows.append(threading.get_ident())
        try:
            return sleep(after, timeout)
        finally:
            follows.remove(threading.get_ident())

    client.backend.wait_events = counted  # type: ignore[method-assign]
    before = threading.stack_size(256 * 1024)
    threads = [in_thread(job.wait) for job in jobs]
    threading.stack_size(before)
    waiting(client, 1000)
    most = 0
    for _ in range(10):
        other.complete_many((job, job.data) for job in other.queues["q"].pop(100))
        most = max(most, len(follows))
    for thread, _ in threads:
        thread.join(PATIENCE)

    assert [kept for _, kept in threads] == [[number] for number in range(1000)]
    assert most <= 1


def test_tasks_of_an_event_loop_wait_together(shared_url: str) -> None:
    async def main() -> list[object]:
        async with qmodel.AsyncClient(shared_url) as client:
            queue = client.queues["q"]
            jobs = [await queue.put("K", number) for number in range(200)]
            tasks = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
            together = asyncio.create_task(client.wait(jobs, PATIENCE))
            await asyncio.sleep(0.01)
            tasks[0].cancel()  # most likely the one that leads
            while found := await queue.pop(50):
                await client.complete_many((job, job.data) for job in found)
            return [await together, *await asyncio.gather(*tasks[1:])]

    assert asyncio.run(main()) == [list(range(200)), *range(1, 200)]


def complete_all(url: str, count: int) -> None:
    with qmodel.Client(url) as client:
        for _ in range(count):
            job = client.queues["q"].pop(timeout=PATIENCE)
            assert job is not None
            job.complete(job.data)


def test_another_process_completes_what_is_waited_for(client_url: str) -> None:
    if client_url == "memory://":
        pytest.skip("it belongs to one process")
    client = qmodel.Client(client_url)
    process = multiprocessing.get_context("spawn").Process(target=complete_all, args=(client_url, 50))
    process.start()
    try:
        jobs = [client.queues["q"].put("K", number) for number in range(50)]
        assert client.wait(jobs, PATIENCE) == list(range(50))
    finally:
        process.join(PATIENCE)
        process.kill()


# ---- the watch


def told(seq: int, event: str, jid: str) -> Event:
    return Event(seq, 0, event, (jid, *("",) * (len(EVENTS[event]) - 1)))


def watch_of(*jids: str, after: int = 10) -> tuple[Watch, Waiter]:
    watch, waiter = Watch(), Waiter(jids, lambda: None)
    assert not watch.enter(waiter)
    watch.begin(Newest(after, 0))
    return watch, waiter


def test_only_ends_of_jobs_that_are_waited_for_are_looked_at() -> None:
    watch, _ = watch_of("a", "b")
    page = [told(11, "popped", "a"), told(12, "completed", "c"), told(13, "failed", "b")]

    assert watch.take(10, page) == ["b"]
    watch.passed(10, page)
    assert watch.after == 13


def test_a_gap_in_the_events_lets_all_be_looked_at() -> None:
    watch, _ = watch_of("a", "b")

    assert watch.take(10, [told(12, "completed", "c")]) == ["a", "b"]
    assert watch.take(12, [told(13, "completed", "c")]) == []


def _multiget_held(client: qmodel.AsyncClient) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold what the next read of jobs has found; give what tells that it was read, and what lets it go on."""
    read, go = asyncio.Event(), asyncio.Event()
    before = client.multiget

    async def multiget(jids: Sequence[str]) -> list[Job]:
        client.multiget = before  # type: ignore[method-assign]
        found = await before(jids)
        read.set()
        await go.wait()
        return found

    client.multiget = multiget  # type: ignore[method-assign]
    return read, go


def test_a_leader_that_is_cancelled_while_it_looks_at_jobs_leaves_that_to_the_next() -> None:
    async def scenario() -> object:
        async with qmodel.AsyncClient(f"memory://{time.monotonic_ns()}") as client:
            queue = client.queues["q"]
            first, second = await queue.put("a"), await queue.put("b", priority=-1)
            leader = asyncio.create_task(first.wait(PATIENCE))
            await asyncio.sleep(0.05)
            other = asyncio.create_task(second.wait(PATIENCE))
            await asyncio.sleep(0.05)
            read, _ = _multiget_held(client)
            popped = await queue.pop()
            assert popped is not None
            await popped.complete(7)
            await read.wait()
            leader.cancel()
            return await asyncio.wait_for(other, 5)

    assert asyncio.run(scenario()) == 7


def test_what_was_read_before_a_put_is_no_answer_to_who_waits_after_it() -> None:
    async def scenario() -> object:
        async with qmodel.AsyncClient(f"memory://{time.monotonic_ns()}") as client:
            read, go = _multiget_held(client)
            early = asyncio.create_task(client.wait(["x"], PATIENCE))
            await read.wait()
            await client.queues["q"].put("a", jid="x")
            late = asyncio.create_task(client.wait(["x"], PATIENCE))
            await asyncio.sleep(0.05)
            go.set()
            assert isinstance((await early)[0], JobNotFound)
            popped = await client.queues["q"].pop()
            assert popped is not None
            await popped.complete(7)
            return (await late)[0]

    assert asyncio.run(scenario()) == 7


def test_a_server_that_lost_its_events_is_followed_from_where_it_is() -> None:
    watch, _ = watch_of("a")
    watch.restart(Newest(12, 0))
    assert watch.after == 10
    watch.restart(Newest(3, 0))
    assert watch.after == 3


def test_who_comes_alone_begins_anew() -> None:
    watch, waiter = watch_of("a")
    watch.leave(waiter)

    assert not watch.enter(waiter)
    assert watch.enter(Waiter(["b"], lambda: None)) is False
    watch.begin(Newest(20, 0))
    watch.begin(Newest(30, 0))
    assert watch.after == 20


def test_the_events_that_end_a_job_are_in_the_catalogue() -> None:
    assert set(EVENTS) >= ENDS
    assert all(EVENTS[event][0] == "jid" for event in ENDS)

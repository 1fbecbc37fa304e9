"""Following the events: those there were, then those that come, on every backend."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

import qmodel
from qmodel.errors import ConnectError, Forked
from tests.pipeline.forks import begin, rewound


@pytest.fixture(params=["given", "embedded"])
def shared_url(request: pytest.FixtureRequest, client_url: str) -> str:
    """A URL under which two clients see the same jobs."""
    if request.param == "embedded":
        if client_url != "memory://":
            pytest.skip("once is enough")
        return f"embedded://{time.monotonic_ns()}"
    return f"memory://{time.monotonic_ns()}" if client_url == "memory://" else client_url


def kinds(events: Iterator[qmodel.Event]) -> list[tuple[int, str]]:
    return [(event.seq, event.event) for event in events]


def test_it_begins_after_a_sequence_and_ends_when_patience_does(client: qmodel.Client) -> None:
    for jid in ("a", "b"):
        client.queues["q"].put("K", jid=jid)
    client.queues["q"].pop()

    assert kinds(client.follow(timeout=0)) == [(1, "epoch_begun"), (2, "put"), (3, "put"), (4, "popped")]
    assert kinds(client.follow(3, timeout=0.05)) == [(4, "popped")]
    assert kinds(client.follow(4, timeout=0.05)) == []
    assert client.newest() == 4


def test_what_another_client_does_is_told_as_it_happens(shared_url: str) -> None:
    seen: list[int] = []
    follower, other = qmodel.Client(shared_url), qmodel.Client(shared_url)
    waits = threading.Semaphore(0)

    def follow() -> None:
        for event in follower.follow(timeout=60):
            seen.append(event.seq)
            waits.release()
            if len(seen) == 50:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    for number in range(50):
        other.queues["q"].put("K", number)
        if number % 5 == 0:
            assert waits.acquire(timeout=30)
    thread.join(30)

    assert seen == list(range(1, 51))


def test_an_event_loop_goes_on_while_a_task_follows(shared_url: str) -> None:
    async def main() -> list[list[int]]:
        async with qmodel.AsyncClient(shared_url) as client:
            await client.queues["q"].put("K", 0)

            async def follow() -> list[int]:
                seen: list[int] = []
                async for event in client.follow(timeout=60):
                    seen.append(event.seq)
                    if event.seq == 10:
                        break
                return seen

            tasks = [asyncio.create_task(follow()), asyncio.create_task(follow())]
            for number in range(1, 10):
                await asyncio.sleep(0.002)
                await client.queues["q"].put("K", number)
            return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [list(range(1, 11))] * 2


def test_who_follows_learns_that_the_connection_was_closed(client_url: str) -> None:
    if client_url == "memory://":
        pytest.skip("there is no connection")
    client = qmodel.Client(client_url)
    ended: list[str] = []

    def follow() -> None:
        try:
            list(client.follow())
        except ConnectError as error:
            ended.append(error.sentence)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)
    client.close()
    thread.join(30)

    assert len(ended) == 1 and "was closed" in ended[0]


def test_the_asynchronous_client_works_on_the_library_in_this_process() -> None:
    async def main() -> list[str]:
        async with qmodel.AsyncClient("embedded://") as client:
            queue = client.queues["q"]
            waiting = asyncio.create_task(queue.pop(timeout=30))
            await asyncio.sleep(0.02)
            await queue.put("K", {"to": 1})
            job = await waiting
            assert job is not None and job.data == {"to": 1}
            await job.complete("done")
            return [event.event async for event in client.events(1)]

    assert asyncio.run(main()) == ["put", "popped", "completed"]


# ---- after a fork


def test_who_follows_is_told_of_a_fork_or_takes_back_what_was_lost() -> None:
    client = qmodel.Client(f"memory://{time.monotonic_ns()}")
    queue = client.queues["q"]
    queue.put("K", jid="both")
    with rewound(client):
        queue.put("K", jid="lost")
        seen = list(client.follow(timeout=0))
    begin(client, 5)
    queue.put("K", jid="other")
    last = seen[-1]

    with pytest.raises(Forked) as told:
        list(client.follow(last.seq, epoch=last.epoch, timeout=0))
    assert (int(told.value.after), int(told.value.common)) == (last.seq, last.seq - 1)

    common: list[int] = []
    later = list(
        client.follow(last.seq, epoch=last.epoch, timeout=0, on_fork=lambda fork: common.append(int(fork.common)))
    )
    assert [*seen[: common[-1]], *later] == list(client.events())
    assert all(one.seq <= last.seq for one in list(client.follow(timeout=0))[: last.seq])
    assert "lost" not in {event.facts[0] for event in client.events(last.seq)}  # a reader without epochs sees no fork


def test_who_waits_for_a_job_goes_on_over_a_fork() -> None:
    client = qmodel.Client(f"memory://{time.monotonic_ns()}")
    queue = client.queues["q"]
    queue.put("K", jid="a")
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.extend(client.wait(["a"], timeout=60)))
    with rewound(client):
        waiting.start()
        for number in range(20):
            queue.put("K", number)
    begin(client, 5)
    job = queue.pop()
    assert job is not None
    job.complete("done")
    waiting.join(60)
    assert found == ["done"]

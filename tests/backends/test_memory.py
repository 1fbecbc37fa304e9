"""`memory://`: one store per name, one step at a time, and waiters that are woken one by one."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from qmodel.backends import open_backend
from qmodel.backends.memory import AsyncMemoryBackend, MemoryBackend, connect, connect_async
from qmodel.backends.namespace import Namespace, system_clock
from qmodel.contract.operations import Length, Pop, Put, RetryMany, Stats
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError


def put(jid: str, queue: str = "q") -> Put:
    return Put(queue, jid, "k", "")


def pop(worker: str = "w", queue: str = "q", wait: bool = False) -> Pop:
    return Pop(queue, worker, 1, wait)


def wait_until(true: object, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_name_is_the_same_store_for_all_and_no_name_a_private_one() -> None:
    connect("memory://shared").execute(put("a"))
    connect("memory://").execute(put("b"))

    assert connect("memory://shared").execute(Length("q")) == 1
    assert connect("memory://other").execute(Length("q")) == 0
    assert connect("memory://").execute(Length("q")) == 0


def test_both_kinds_of_backend_share_a_named_store() -> None:
    connect("memory://both").execute(put("a"))

    assert asyncio.run(connect_async("memory://both").execute(Length("q"))) == 1


@pytest.mark.parametrize("url", ["memory://a/b", "memory://a b", "memory://é/"])
def test_a_bad_name_is_an_error_that_says_what_to_write(url: str) -> None:
    if url == "memory://é/":
        connect(url)  # letters of any script are letters
        return
    with pytest.raises(ConnectError, match="Write memory://"):
        open_backend(url)


def test_the_clock_can_be_injected_and_an_argument_goes_before_it() -> None:
    backend = MemoryBackend(clock=lambda: 86_400_000)

    assert backend.now() == 86_400_000
    assert backend.execute(Stats("q")).day == 86_400_000
    assert backend.execute(Stats("q"), now=5).day == 0


def test_a_refusal_is_given_and_not_raised() -> None:
    assert isinstance(MemoryBackend().execute(RetryMany(to="")), Refusal)


def test_many_operations_are_executed_in_order() -> None:
    assert MemoryBackend().execute_many([put("a"), Length("q"), put("b"), Length("q")]) == [
        "a",
        1,
        "b",
        2,
    ]


def test_threads_make_one_step_at_a_time() -> None:
    backend = MemoryBackend()

    def work(name: str) -> None:
        for number in range(200):
            backend.execute(put(f"{name}-{number}"))
            backend.execute(pop(name))

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert backend.execute(Length("q")) == 1600
    assert backend.store.seq == 1 + 3200  # an epoch begins first


def test_a_wait_ends_when_the_time_is_up() -> None:
    backend = MemoryBackend()
    backend.execute(pop(wait=True))
    began = time.monotonic()

    assert backend.wait(["q"], 0.05) is False
    assert time.monotonic() - began > 0.04


def test_a_wake_up_left_before_the_wait_is_not_lost() -> None:
    backend = MemoryBackend()
    backend.execute(pop(wait=True))
    backend.execute(put("a"))

    assert backend.wait(["q"], 0) is True
    assert backend.wait(["q"], 0) is False


def test_a_put_wakes_a_waiter_each_time() -> None:
    backend = MemoryBackend()
    woken: list[bool] = []
    for number in range(20):
        backend.execute(pop(wait=True))
        thread = threading.Thread(target=lambda: woken.append(backend.wait(["q", "p"], 3600)))
        thread.start()
        wait_until(lambda: backend.namespace._waiting)
        backend.execute(put(str(number)))
        thread.join()
        backend.execute(pop())
    assert woken == [True] * 20


def test_a_job_wakes_one_of_many_waiters() -> None:
    backend = MemoryBackend()
    woken: list[str] = []

    def idle(name: str) -> None:
        backend.execute(pop(name, wait=True))
        if backend.wait(["q"], 20):
            woken.append(name)

    threads = [threading.Thread(target=idle, args=(f"w{n}",)) for n in range(200)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(backend.namespace._waiting.get("q", ())) == 200)

    for number in range(3):
        backend.execute(put(str(number)))
    wait_until(lambda: len(woken) == 3)
    time.sleep(0.05)
    assert len(woken) == 3

    for number in range(3, 200):
        backend.execute(put(str(number)))
    for thread in threads:
        thread.join()
    assert len(woken) == 200
    assert backend.namespace._waiting == {}


def test_a_waiter_of_several_queues_is_woken_by_any_and_stands_in_none_afterwards() -> None:
    backend = MemoryBackend()
    for queue in ("p", "q"):
        backend.execute(pop(queue=queue, wait=True))
    threading.Timer(0.02, backend.execute, [put("a", "q")]).start()

    assert backend.wait(["p", "q"], 5) is True
    assert backend.namespace._waiting == {}


def test_a_job_that_becomes_due_at_a_pop_wakes_another_waiter() -> None:
    now = [0]
    backend = MemoryBackend(clock=lambda: now[0])
    for jid in "ab":
        backend.execute(Put("q", jid, "k", "", delay_ms=1000))
    backend.execute(pop("idle", wait=True))
    now[0] = 1000
    threading.Timer(0.02, backend.execute, [pop("busy")]).start()

    assert backend.wait(["q"], 5) is True


def test_an_event_loop_waits_without_blocking() -> None:
    async def main() -> list[bool]:
        backend = AsyncMemoryBackend()
        for _ in range(3):
            await backend.execute(pop(wait=True))
        waits = [asyncio.create_task(backend.wait(["q"], 0.2)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for jid in "ab":
            await backend.execute(put(jid))
        return await asyncio.gather(*waits)

    assert asyncio.run(main()) == [True, True, False]


def test_a_put_from_another_thread_wakes_an_event_loop() -> None:
    namespace = Namespace(system_clock)

    async def main() -> bool:
        backend = AsyncMemoryBackend(namespace)
        await backend.execute(pop(wait=True))
        threading.Timer(0.02, MemoryBackend(namespace).execute, [put("a")]).start()
        return await backend.wait(["q"], 5)

    assert asyncio.run(main()) is True


def test_a_canceled_waiter_leaves_its_wake_up_to_another() -> None:
    async def main() -> bool:
        backend = AsyncMemoryBackend()
        for _ in range(2):
            await backend.execute(pop(wait=True))
        first = asyncio.create_task(backend.wait(["q"], 5))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(backend.wait(["q"], 5))
        await asyncio.sleep(0.01)
        await backend.execute(put("a"))
        first.cancel()
        return await second

    assert asyncio.run(main()) is True


def test_a_waiter_whose_loop_is_closed_is_passed_over() -> None:
    namespace = Namespace(system_clock)
    backend = MemoryBackend(namespace)
    backend.execute(pop(wait=True))
    loop = asyncio.new_event_loop()
    task = loop.create_task(AsyncMemoryBackend(namespace).wait(["q"], 60))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    threading.Timer(0.05, backend.execute, [put("a")]).start()

    assert backend.wait(["q"], 5) is True
    del task

"""What must hold when replies are lost, connections cut, and servers killed, full or not there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis._parsers.base import BaseParser

from qmodel.backends.redis.connect import connect, connect_async
from qmodel.backends.redis.resend import FIRST_DELAY, LONGEST_DELAY, Attempts, ServerError, may_pass
from qmodel.client.sync import Client
from qmodel.contract.operations import (
    Cancel,
    Complete,
    CompleteAndPop,
    Events,
    Fail,
    Get,
    Heartbeat,
    Length,
    Log,
    Pop,
    Put,
    Queue,
    Release,
    Retry,
)
from qmodel.errors import ConnectError, JobNotFound
from tests.backends.helpers import Private, Proxy, Starter
from tests.backends.test_redis import Blocking

SERVER = pytest.mark.server


@pytest.fixture
def fresh(private: Starter) -> Iterator[Private]:
    with private() as server:
        yield server


@pytest.fixture
def line(fresh: Private) -> Iterator[Proxy]:
    with Proxy(fresh.url) as made:
        yield made


def opened(kind: str, url: str) -> Any:
    return connect(url) if kind == "sync" else Blocking(url)


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


# ---- lost replies


@SERVER
@KINDS
def test_an_operation_whose_reply_is_lost_happens_once_and_is_answered(kind: str, line: Proxy) -> None:
    backend = opened(kind, line.url)
    backend.execute(Length("q"))

    def losing(op: Any) -> Any:
        """Execute it with the next two replies lost."""
        line.drop = 2
        reply = backend.execute(op)
        assert line.drop == 0
        return reply

    assert losing(Put("q", "a", "K", "")) == "a"
    assert losing(Put("q", "b", "K", "")) == "b"
    (job,) = losing(Pop("q", "w"))
    assert losing(Log("a", "once")) == "a"
    assert losing(Heartbeat("a", job.token)).expires_at > 0
    state, (other,) = losing(CompleteAndPop("a", job.token, "q", "w"))
    assert (state, other.jid) == ("complete", "b")
    assert losing(Complete("b", other.token)) == "complete"
    kinds = [event.event for event in backend.execute(Events(1))]  # the first one begins an epoch
    assert kinds == ["put", "put", "popped", "logged", "completed", "popped", "completed"]
    assert line.lost == 14
    backend.close()


@SERVER
def test_without_a_request_id_a_lost_reply_would_lose_a_job(line: Proxy) -> None:
    """The negative twin: what the request id is for."""
    backend = connect(line.url + "&requests=given")
    backend.execute_many([Put("q", "a", "K", ""), Put("q", "b", "K", "")])
    line.drop = 1
    assert [job.jid for job in backend.execute(Pop("q", "w"))] == ["b"]


@SERVER
@KINDS
def test_a_reply_that_never_comes_is_given_up_and_asked_for_again(kind: str, line: Proxy) -> None:
    backend = opened(kind, line.url + "&socket_timeout=0.3")
    backend.execute_many([Put("q", "a", "K", ""), Put("q", "b", "K", "")])
    line.cuts, line.drop = False, 1
    assert [job.jid for job in backend.execute(Pop("q", "w"))] == ["a"]
    assert backend.execute(Queue("q")).running == 1
    backend.close()


@SERVER
@KINDS
def test_many_whose_replies_are_lost_happen_once_each(kind: str, line: Proxy) -> None:
    backend = opened(kind, line.url)
    backend.execute(Length("q"))
    line.drop = 1
    put = backend.execute_many([Put("q", f"j{number}", "K", "") for number in range(700)])
    line.drop = 1
    popped = backend.execute_many([Pop("q", "w") for _ in range(700)])
    assert put == [f"j{number}" for number in range(700)]
    assert [job.jid for jobs in popped for job in jobs] == put
    assert len(backend.execute(Events(1, 1000))) + len(backend.execute(Events(1001, 1000))) == 1400
    backend.close()


# ---- connections and servers that go away


@SERVER
@KINDS
def test_pops_survive_their_connections_being_killed(kind: str, fresh: Private) -> None:
    backend = opened(kind, fresh.url)
    backend.execute_many([Put("q", f"j{number}", "K", "") for number in range(500)])
    popped: list[str] = []
    with killing(fresh, popped):
        for _ in range(500):
            popped += [job.jid for job in backend.execute(Pop("q", "w"))]
    assert popped == [f"j{number}" for number in range(500)]
    backend.close()


@contextlib.contextmanager
def killing(server: Private, done: list[str]) -> Iterator[None]:
    """Kill all connections again and again, each time that something was done: a slow machine must get somewhere."""
    ended = threading.Event()

    def run() -> None:
        with server.client() as client:
            before = -1
            while not ended.wait(0.005):
                if len(done) > before:
                    before = len(done)
                    client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@SERVER
@KINDS
def test_who_waits_while_connections_are_killed_wakes_soon_and_may_wait_again(kind: str, fresh: Private) -> None:
    backend = opened(kind, fresh.url)
    with when_blocked(fresh, lambda: kill_all(fresh)):
        assert backend.wait(["q"], 3600) is False
    backend.execute(Pop("q", "w", wait=True))
    with when_blocked(fresh, lambda: connect(fresh.url).execute(Put("q", "a", "K", ""))):
        assert backend.wait(["q"], 3600) is True
    backend.close()


@contextlib.contextmanager
def when_blocked(server: Private, act: Callable[[], object]) -> Iterator[None]:
    """Act in another thread as soon as the server has a client that waits, however late that is."""
    ended = threading.Event()

    def run() -> None:
        with server.client() as client:
            while not client.info("clients")["blocked_clients"]:
                if ended.wait(0.01):
                    return
        act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def kill_all(server: Private) -> None:
    with server.client() as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@SERVER
def test_a_server_that_is_gone_does_not_make_waiters_spin(fresh: Private) -> None:
    backend = connect(fresh.url)
    fresh.kill()
    began = time.monotonic()
    assert [backend.wait(["q"], 3600) for _ in range(3)] == [False] * 3
    assert time.monotonic() - began > 1


@SERVER
@KINDS
def test_all_that_was_acknowledged_outlives_a_killed_server(kind: str, private: Starter) -> None:
    with private("--appendonly", "yes", "--appendfsync", "always") as server:
        acknowledged: list[str] = []

        def put(name: str) -> None:
            backend = opened(kind, server.url)
            for number in range(300):
                acknowledged.append(backend.execute(Put("q", f"{name}-{number}", "K", "")))
            backend.close()

        threads = [threading.Thread(target=put, args=(f"t{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for enough in (100, 500):
            while len(acknowledged) < enough:
                time.sleep(0.001)
            server.kill()
            assert len(acknowledged) < 1200, "the server was killed too late"
            server.start()
        for thread in threads:
            thread.join()
        backend = connect(server.url)
        popped = [job.jid for _ in range(13) for job in backend.execute(Pop("q", "w", count=100))]
        assert sorted(popped) == sorted(acknowledged)
        assert len(set(acknowledged)) == 1200
        events = [event for page in (0, 1000, 2000) for event in backend.execute(Events(page, 1000))]
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert Counter(event.event for event in events if event.event != "epoch_begun") == {"put": 1200, "popped": 1200}


@SERVER
@pytest.mark.parametrize("kept", ["yes", "no"])
def test_who_waits_for_a_result_outlives_a_killed_server(kept: str, private: Starter) -> None:
    with private("--appendonly", kept, "--appendfsync", "always") as server:
        client, other = Client(server.url), Client(server.url)
        client.queues["r"].put_many([("K", number) for number in range(50)])  # events to be lost
        jobs = [client.queues["q"].put("K", jid=f"a{number}") for number in range(20)]
        found: list[object] = []
        threads = [threading.Thread(target=lambda job=job: found.extend(client.wait([job], 60))) for job in jobs]  # type: ignore[misc]
        for thread in threads:
            thread.start()
        while len(client._results._watch._waiters) < len(jobs):
            time.sleep(0.001)
        server.kill()
        server.start()
        if kept == "yes":
            other.complete_many((job, job.jid) for job in other.queues["q"].pop(20))
        for thread in threads:
            thread.join(60)
        if kept == "yes":
            assert sorted(map(str, found)) == sorted(job.jid for job in jobs)
        else:
            assert {type(one) for one in found} == {JobNotFound} and len(found) == 20


@SERVER
@KINDS
def test_a_master_that_becomes_a_replica_is_waited_for(kind: str, fresh: Private) -> None:
    backend = opened(kind, fresh.url)
    backend.execute(Length("q"))
    with fresh.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        threading.Timer(0.3, lambda: fresh.client().execute_command("REPLICAOF", "NO", "ONE")).start()
        assert backend.execute(Put("q", "a", "K", "")) == "a"
        assert [event.event for event in backend.execute(Events())] == ["epoch_begun", "put"]
    backend.close()


@SERVER
def test_a_busy_server_is_waited_for(fresh: Private) -> None:
    backend = connect(fresh.url + "?socket_timeout=0.2")
    with fresh.client() as client:
        client.config_set("busy-reply-threshold", 50)
    hold = "local t = redis.call('TIME') repeat local n = redis.call('TIME') until n[1] * 1000 + n[2] / 1000 > "
    hold += "t[1] * 1000 + t[2] / 1000 + 800"
    holding = threading.Thread(target=lambda: fresh.client().eval(hold, 0))
    holding.start()
    time.sleep(0.2)
    assert backend.execute(Put("q", "a", "K", "")) == "a"
    holding.join()
    assert backend.execute(Length("q")) == 1


@SERVER
@KINDS
def test_the_deadline_ends_the_sending(kind: str, fresh: Private) -> None:
    backend = opened(kind, fresh.url + "?deadline=0.5")
    backend.execute(Length("q"))
    fresh.kill()
    for call in (lambda: backend.execute(Length("q")), lambda: backend.execute_many([Length("q")])):
        began = time.monotonic()
        with pytest.raises(ConnectError, match=r"could not be used for 0\.5 seconds") as error:
            call()
        assert time.monotonic() - began < 50  # by itself a call is sent again for a minute
        assert "same request id" in error.value.next_step
    backend.close()


# ---- the first connection


@SERVER
@KINDS
def test_a_first_connection_is_tried_until_the_server_starts(kind: str, fresh: Private) -> None:
    fresh.kill()
    later = threading.Timer(1.0, fresh.start)
    later.start()
    backend = opened(kind, fresh.url)
    assert backend.execute(Put("q", "a", "K", "")) == "a"
    later.join()
    backend.close()


@SERVER
@KINDS
@pytest.mark.parametrize("lost", [1, 2, 4])
def test_a_first_connection_survives_lost_replies(lost: int, kind: str, line: Proxy) -> None:
    line.drop = lost
    backend = opened(kind, line.url)
    assert backend.execute(Put("q", "a", "K", "")) == "a"
    assert line.drop == 0
    backend.close()


@KINDS
def test_the_deadline_ends_the_first_connection(kind: str) -> None:
    began = time.monotonic()
    with pytest.raises(ConnectError, match=r"tried again for 0\.5 seconds"):
        opened(kind, "unix:///nowhere/at/all?deadline=0.5").execute(Length("q"))
    assert 0.1 < time.monotonic() - began < 50


def test_tasks_that_wait_for_the_same_first_connection_end_with_their_deadline() -> None:
    async def calls() -> list[Any]:
        backend = connect_async("unix:///nowhere/at/all?deadline=0.4")
        return await asyncio.gather(*(backend.execute(Length("q")) for _ in range(50)), return_exceptions=True)

    began = time.monotonic()
    assert {type(one) for one in asyncio.run(calls())} == {ConnectError}
    assert time.monotonic() - began < 10  # one after the other they would take 20 seconds


@SERVER
@KINDS
def test_what_waiting_does_not_cure_fails_at_once(kind: str, private: Starter) -> None:
    with private("--requirepass", "right") as server:
        began = time.monotonic()
        with pytest.raises(ConnectError, match="wants a password"):
            opened(kind, server.url).execute(Length("q"))
        assert time.monotonic() - began < 30  # half of the deadline


# ---- a full server


@SERVER
@KINDS
def test_a_full_server_refuses_what_is_new_and_drains(kind: str, fresh: Private) -> None:
    backend = opened(kind, fresh.url)
    jids = ("done", "failed", "tried", "released", "long", "ready", "other")
    backend.execute_many([Put("q", jid, "K", "") for jid in jids])
    tokens = {job.jid: job.token for job in backend.execute(Pop("q", "w", count=5))}
    with fresh.client() as client:
        client.config_set("maxmemory", 1)
        for refused in (Put("q", "new", "K", ""), Pop("q", "w")):
            with pytest.raises(ServerError, match="reached maxmemory") as error:
                backend.execute(refused)
            assert error.value.code == "OOM" and "raise maxmemory" in error.value.next_step
        with pytest.raises(ServerError):
            backend.execute_many([Put("q", "new", "K", ""), Heartbeat("long", tokens["long"])])
        assert backend.execute(Complete("done", tokens["done"])) == "complete"
        assert backend.execute(Fail("failed", tokens["failed"], "group", "message")) == "failed"
        assert backend.execute(Retry("tried", tokens["tried"])) == 4
        assert backend.execute(Release("released", tokens["released"])) == "waiting"
        assert backend.execute(Heartbeat("long", tokens["long"])).expires_at > 0
        assert backend.execute(Cancel(("ready",))) == ("ready",)
        assert backend.execute(Get("other")).state == "waiting"
        client.config_set("maxmemory", 0)
        assert backend.execute(Put("q", "new", "K", "")) == "new"
    backend.close()


# ---- waking


@SERVER
def test_an_idle_worker_is_woken_by_each_put(fresh: Private) -> None:
    worker, putter = connect(fresh.url), connect(fresh.url)
    for number in range(50):
        assert worker.execute(Pop("q", "w", wait=True)) == ()
        putting = threading.Timer(0.01, putter.execute, [Put("q", f"j{number}", "K", "")])
        putting.start()
        assert worker.wait(["q"], 3600) is True
        putting.join()
        (job,) = worker.execute(Pop("q", "w"))
        worker.execute(Complete(job.jid, job.token))


@SERVER
@pytest.mark.slow
def test_of_a_thousand_who_wait_one_put_wakes_one(fresh: Private) -> None:
    async def main() -> None:
        backend = connect_async(fresh.url)
        for number in range(1000):
            await backend.execute(Pop("q", f"w{number}", wait=True))
        waiting: set[asyncio.Task[bool]] = set()
        with fresh.client() as client:
            while len(waiting) < 1000:  # not all at once: a slow machine takes longer than a connection is waited for
                waiting |= {asyncio.create_task(backend.wait(["q"], 3600)) for _ in range(50)}
                while client.info("clients")["blocked_clients"] < len(waiting):
                    assert not any(task.done() for task in waiting)
                    await asyncio.sleep(0.01)
        for number in range(1, 4):
            await backend.execute(Put("q", f"j{number}", "K", ""))
            await asyncio.wait(waiting, timeout=60, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0.3)
            woken = [task for task in waiting if task.done()]
            assert len(woken) == number
            assert all(task.result() for task in woken)
        await backend.close()
        assert sum(await asyncio.gather(*waiting)) == 3

    asyncio.run(main())


# ---- the policy


@pytest.mark.parametrize(
    "text, passes",
    [
        ("LOADING Redis is loading the dataset in memory", True),
        ("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.", True),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", True),
        ("READONLY You can't write against a read only replica.", True),
        ("NOREPLICAS Not enough good replicas to write.", True),
        ("CLUSTERDOWN The cluster is down", True),
        ("TRYAGAIN Multiple keys request during rehashing of slot", True),
        ("MOVED 3999 127.0.0.1:6381", True),
        ("NOSCRIPT No matching script. Please use EVAL.", True),
        ("ERR Function not found", True),
        ("ERR max number of clients reached", True),
        ("UNBLOCKED force unblock from blocking operation, instance state changed", True),
        ("OOM command not allowed when used memory > 'maxmemory'.", False),
        ("NOPERM this user has no permissions to run the 'fcall' command", False),
        ("WRONGPASS invalid username-password pair or user is disabled.", False),
        ("NOAUTH Authentication required.", False),
        ("MISCONF Errors writing to the AOF file: No space left on device", False),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", False),
        ("ERR user_function:12: attempt to index a nil value", False),
        ("ERR unknown command 'FCALL'", False),
    ],
)
def test_what_may_pass_is_sent_again(text: str, passes: bool) -> None:
    error = BaseParser.parse_error(text)
    assert may_pass(error) is passes
    if not passes:
        with pytest.raises(ServerError):
            Attempts(60, "redis://h").delay(error)


def test_delays_grow_and_are_jittered_up_to_the_deadline() -> None:
    attempts = Attempts(60, "redis://h")
    delays = [attempts.delay(ConnectionResetError()) for _ in range(200)]
    assert delays[0] <= FIRST_DELAY
    assert LONGEST_DELAY / 2 < max(delays) <= LONGEST_DELAY
    assert len(set(delays)) > 190
    with pytest.raises(ConnectError, match="for 0 seconds"):
        Attempts(0, "redis://h").delay(ConnectionResetError("reset"))


def test_our_own_faults_are_not_sent_again() -> None:
    assert may_pass(ValueError()) is False

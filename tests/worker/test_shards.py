"""The worker on a deployment: turns, wake-ups, looks, and nodes that are away."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from qmodel import App, Client, Worker
from qmodel.backends.redis.deployment import RedisDeployment
from qmodel.contract import operations as ops
from qmodel.contract.routing import shard_tag
from qmodel.errors import ConnectError
from qmodel.model.deployment.plans import Call
from qmodel.worker import shard_wake_ups
from qmodel.worker.connection import Connection
from qmodel.worker.shard_looks import ROUND, ShardLooks
from qmodel.worker.shard_wake_ups import ShardWakeUps
from qmodel.worker.shards import Shards
from qmodel.worker.turns import Turns
from tests.clusters import wait_until
from tests.servers import Server

N = 8

# ---- turns


def test_a_worker_stays_with_a_shard_for_a_burst_and_then_goes_on() -> None:
    turns = Turns(range(3), burst=4)
    got = []
    for _ in range(24):
        got.append(turns.current())
        turns.took(1, more=True)
    assert got == [0] * 4 + [1] * 4 + [2] * 4 + [0] * 4 + [1] * 4 + [2] * 4


def test_a_shard_that_gave_all_it_has_lets_the_next_one_have_its_turn() -> None:
    turns = Turns(range(3))
    turns.took(2, more=False)
    assert turns.current() == turns.ahead() == 1
    assert turns.gave(0) and not turns.gave(1)
    assert turns.is_dry(0) and not turns.is_dry(1)
    turns.arm(1)
    turns.arm(0)
    assert turns.current() == 2 and not turns.is_dry(0)


def test_a_shard_that_rests_has_no_turn_until_it_is_armed_or_its_rest_ends() -> None:
    turns = Turns(range(3))
    turns.took(1, more=False)
    turns.set_aside(0)
    assert turns.resting and turns.is_dry(0)
    assert [turns.current(), turns.ahead()] == [1, 1]
    turns.end_rest(0)
    assert not turns.resting
    turns.arm(1)
    turns.arm(2)
    assert turns.current() == 0
    turns.set_aside(0)
    turns.arm(0)  # by the pop that went with a report
    turns.end_rest(0)
    assert turns.current() is None and not turns.resting


def test_a_busy_worker_waits_while_all_open_shards_have_given_all_they_have() -> None:
    shards = Shards.__new__(Shards)
    shards.turns = Turns(range(2))
    shards.turns.took(1, more=False)
    assert not shards.waits(idle=False) and not shards.waits(idle=True)
    shards.turns.took(1, more=False)
    assert shards.waits(idle=False)  # nobody would be asked for jobs ahead: without waiting, the worker would spin
    assert not shards.waits(idle=True)


def test_between_two_turns_of_a_shard_each_other_open_one_has_a_turn() -> None:
    chance = random.Random(7)
    turns = Turns(range(N), burst=3)
    since: dict[int, int] = dict.fromkeys(range(N), 0)
    for _ in range(4000):
        match chance.randrange(8):
            case 0:
                turns.open(chance.randrange(N))
            case 1:
                turns.leave(chance.randrange(N))
            case 2:
                turns.come_back(chance.randrange(N))
            case _:
                shard = turns.current()
                if shard is None:
                    continue
                assert shard not in turns.away
                if chance.randrange(4):
                    turns.took(1, more=bool(chance.randrange(3)))
                else:
                    turns.arm(shard)
                since = {one: count + 1 for one, count in since.items()} | {shard: 0}
                still = [one for one in turns._open if one != shard]
                assert all(since[one] <= 3 * N for one in still)
        since |= {one: 0 for one in range(N) if one not in turns._open}


def test_a_shard_that_is_away_is_not_opened_by_a_wake_up() -> None:
    turns = Turns(range(2))
    turns.leave(0)
    turns.arm(1)
    turns.open(0)
    assert turns.current() is None
    turns.come_back(0)
    assert turns.current() == 0


# ---- a server


def jid(shard: int, number: int = 0) -> str:
    return f"j{number}{{{shard_tag(shard, N)}}}"


@pytest.fixture
def url(server: Server) -> str:
    return f"{server.url}?name={os.urandom(6).hex()}&shards={N}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as made:
        yield made


def app_of(url: str, perform: Any) -> App:
    app = App(url)

    @app.job
    def work(n: int) -> Any:
        return perform(n)

    return app


@contextmanager
def at_work(app: App, **options: Any) -> Iterator[Worker]:
    worker = Worker(app, **options)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        assert not thread.is_alive()


def asleep(client: Client, workers: int = 1) -> None:
    """Wait until each of some workers is idle in every shard."""
    with raw_of(client) as raw:
        wait_until(lambda: raw.info("clients")["blocked_clients"] >= workers * N)


def raw_of(client: Client) -> Any:
    at: Any = client.backend.at  # type: ignore[attr-defined]
    kind = redis.UnixDomainSocketConnection if "path" in at else redis.Connection
    where = {name: at[name] for name in ("host", "port", "path") if name in at}
    return redis.Redis.from_pool(redis.ConnectionPool(connection_class=kind, **where))


def calls(client: Client) -> int:
    with raw_of(client) as raw:
        return int(raw.info("commandstats").get("cmdstat_fcall", {"calls": 0})["calls"])


def test_a_burst_ends_when_no_shard_has_a_ready_job(client: Client, url: str) -> None:
    done: list[int] = []
    for number in range(3 * N):
        client.queues["default"].put("work", {"n": number}, jid=jid(number % N, number))
    Worker(app_of(url, done.append), burst=True).run()
    assert sorted(done) == list(range(3 * N))


def test_no_wake_up_is_lost_and_the_calls_of_a_job_do_not_grow_with_the_shards(client: Client, url: str) -> None:
    done = threading.Semaphore(0)
    with at_work(app_of(url, lambda n: done.release())):
        asleep(client)
        begun, looks = calls(client), time.monotonic()
        for number in range(3 * N):
            client.queues["default"].put("work", {"n": number}, jid=jid(number % N, number))
            assert done.acquire(timeout=30)
        asleep(client)
        seconds = time.monotonic() - looks
        # a put, a pop, a completion with an empty pop; the poll for signals; the pop and the list by which workers meet
        assert calls(client) - begun <= 3 * N * 3.2 + 2 * seconds


def test_two_workers_share_the_jobs_of_all_shards(client: Client, url: str) -> None:
    lock, done = threading.Lock(), []

    def work(n: int) -> None:
        with lock:
            done.append(n)

    with at_work(app_of(url, work), concurrency=2, name="one"), at_work(app_of(url, work), name="two"):
        asleep(client, 2)
        client.backend.execute_many(
            [ops.Put("default", jid(number % N, number), "work", f'{{"n": {number}}}') for number in range(200)]
        )
        wait_until(lambda: len(done) == 200)
    assert sorted(done) == list(range(200))
    assert client.queues["default"].length() == 0


def test_what_becomes_ready_by_itself_is_noticed(client: Client, url: str) -> None:
    done: list[float] = []
    with at_work(app_of(url, lambda n: done.append(time.monotonic()))):
        asleep(client)
        put = time.monotonic()
        client.queues["default"].put("work", {"n": 1}, delay=0.3, jid=jid(5))
        wait_until(lambda: done)
        assert done[0] - put >= 0.3
        client.queues["default"].put("work", {"n": 2}, jid=jid(6, 1))
        wait_until(lambda: len(done) == 2)


def test_a_job_whose_worker_died_is_taken_by_another_one(client: Client, url: str) -> None:
    client.config["heartbeat"] = 1
    client.config["grace-period"] = 0
    client.queues["default"].put("work", {"n": 1}, jid=jid(3))
    assert client.queues["default"].pop(worker="dead") is not None
    done: list[int] = []
    with at_work(app_of(url, done.append)):
        wait_until(lambda: done == [1])


def test_several_queues_and_single_ones_are_served(server: Server) -> None:
    url = f"{server.url}?name={os.urandom(6).hex()}&shards={N}&single=one,two"
    with Client(url) as client:
        for queues in (("one", "two"), ("one", "default"), ("one",)):
            done: list[int] = []
            with at_work(app_of(url, done.append), queues=queues):
                for number, name in enumerate(queues):
                    client.queues[name].put("work", {"n": number})
                wait_until(lambda done=done, queues=queues: sorted(done) == list(range(len(queues))))


@pytest.mark.parametrize("runner", ["fork", "async"])
def test_other_runners_work_on_shards(runner: str, client: Client, url: str) -> None:
    with at_work(app_of(url, lambda n: 2 * n), runner=runner, concurrency=2):
        jobs = [
            client.queues["default"].put("work", {"n": number}, jid=jid(number % N, number)) for number in range(12)
        ]
        assert client.wait(jobs, 60) == [2 * number for number in range(12)]


def test_a_quiet_worker_leaves_wake_ups_to_others(client: Client, url: str) -> None:
    one: list[int] = []
    two: list[int] = []
    with at_work(app_of(url, one.append), name="one") as quiet:
        asleep(client)
        quiet.quiet()
        with at_work(app_of(url, two.append), name="two"):
            asleep(client, 2)
            for number in range(2 * N):
                client.queues["default"].put("work", {"n": number}, jid=jid(number % N, number))
            wait_until(lambda: len(two) == 2 * N)
    assert one == []


def test_a_busy_worker_passes_a_wake_up_on(client: Client, url: str) -> None:
    """The one that is woken has no free slot, and would begin the job late."""
    go_on, begun = threading.Event(), threading.Event()

    def long(n: int) -> None:
        begun.set()
        assert go_on.wait(60)

    short: list[int] = []
    with at_work(app_of(url, long), name="busy"):
        asleep(client)
        client.queues["default"].put("work", {"n": 0}, jid=jid(0))
        assert begun.wait(30)
        with at_work(app_of(url, short.append), name="free"):
            for number in range(1, 3 * N):
                client.queues["default"].put("work", {"n": number}, jid=jid(number % N, number))
                wait_until(lambda number=number: len(short) == number)  # type: ignore[misc]
            go_on.set()
    assert sorted(short) == list(range(1, 3 * N))


def test_a_wake_up_that_a_busy_worker_keeps_is_used_or_pushed_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend: Any = client.backend
    busy, woken = True, []
    wake_ups = ShardWakeUps(backend, ["q"], range(N), "w", woken.append, woken.append, woken.append, lambda: busy)
    wake_ups.start()
    for shard, used in ((2, False), (5, True)):
        if used:
            monkeypatch.setattr(shard_wake_ups, "HELD", 60)  # so that it is not pushed back before it is used
        backend.execute_calls([Call(shard, ops.Pop("q", "w", 1, True))])
        wake_ups.arm(shard, look=False)
        backend.execute(ops.Put("q", jid(shard), "K", "{}"))
        wait_until(lambda shard=shard: shard in woken)  # type: ignore[misc]
        if used:
            wake_ups.use(shard)
        else:
            assert backend.wait(["q"], 10), "it was pushed back, and another one is woken"
    wake_ups.close()
    wake_ups.finish()
    assert not backend.wait(["q"], 0.1)


def test_what_is_awaited_from_a_node_that_failed_is_given_up(client: Client) -> None:
    backend: Any = client.backend
    armed = backend.armed()
    for shard in (2, 5):
        assert armed.arm(shard, backend.wake_command(shard, ["q"]))
    assert armed.give_up() == []
    backend.nodes.renew(backend.shards[2]._line)  # as after a call to the node that failed
    assert armed.give_up() == [2, 5] and armed.pending == []
    armed.disarm()


def test_a_connection_on_which_a_shard_was_awaited_is_not_kept_after_the_end(client: Client, url: str) -> None:
    with Client(url) as other:
        backend: Any = other.backend
        armed = backend.armed()
        assert armed.arm(2, backend.wake_command(2, ["q"]))
        line, (connection,) = backend.shards[2]._line, armed.connections
        backend.execute_calls([Call(2, ops.Pop("q", "w", 1, True))])
    client.backend.execute(ops.Put("q", jid(2), "K", "{}"))
    assert [shard for shard, _ in armed.ring(30)] == [2]
    assert line.waiting == [] and connection._sock is None
    armed.disarm()


def test_a_worker_looks_after_a_shard_in_which_nothing_wakes_it(client: Client) -> None:
    backend: Any = client.backend
    woken: list[int] = []
    wake_ups = ShardWakeUps(backend, ["q"], range(N), "w", woken.append, woken.append, woken.append, lambda: False)
    wake_ups.start()
    for shard in (2, 5):
        backend.execute_calls([Call(shard, ops.Pop("q", "w"))])
        wake_ups.arm(shard, look=False)
    backend.execute(ops.Put("q", jid(5), "K", "{}"))  # no worker counts as idle there, so this wakes nobody
    wait_until(lambda: woken)
    wake_ups.close()
    wake_ups.finish()
    assert woken == [5]


def test_nodes_that_are_away_are_looked_at_until_a_worker_that_stops_has_finished_its_jobs(client: Client) -> None:
    back: list[int] = []
    wake_ups = ShardWakeUps(client.backend, ["q"], range(N), "w", back.append, back.append, back.append, lambda: False)
    wake_ups.start()
    wake_ups.close()
    for shard in (2, 5):
        wake_ups.watch(shard)
    wait_until(lambda: sorted(back) == [2, 5])
    wake_ups.finish()
    assert not any(thread.is_alive() for thread in wake_ups._threads)


def test_one_worker_of_all_looks_after_each_shard() -> None:
    names = ("one", "two", "three")
    mine: dict[str, set[int]] = {}
    for name in names:
        looks = ShardLooks(None, ["q"], range(64), name)
        looks._workers = names
        mine[name] = {shard for shard in range(64) if looks.is_mine(shard)}
    assert sorted(shard for some in mine.values() for shard in some) == list(range(64))
    assert all(len(some) > 10 for some in mine.values())


def test_each_worker_looks_at_every_shard_once_in_a_round() -> None:
    """Others, who would look more often, may serve other queues."""
    looks = ShardLooks(None, ["q"], range(64), "w")
    looks.is_mine = lambda shard: False  # type: ignore[method-assign]
    found = [shard for second in range(ROUND) for shard in looks.listed(float(second), set(range(64)))]
    assert sorted(found) == list(range(64))


def test_a_shard_is_asked_only_if_it_has_a_job_that_is_or_becomes_ready(client: Client) -> None:
    backend: Any = client.backend
    there = [ops.Put("q", jid(1), "K", "{}"), ops.Put("q", jid(2), "K", "{}", delay_ms=60_000)]
    there += [ops.Put("q", jid(number), "K", "{}") for number in (3, 4)]
    for op in there:
        backend.execute(op)
    ended = backend.execute_calls([Call(shard, ops.Pop("q", "w")) for shard in (3, 4)])[0][0]
    backend.execute(ops.Complete(ended.jid, ended.token))
    assert backend.may_become_ready(range(N), ["q", "other"], 5.0) == {1, 2, 4}
    assert backend.may_become_ready(range(N), ["other"], 5.0) == set()


def test_what_only_leases_end_is_known_for_half_a_lease(client: Client) -> None:
    backend: Any = client.backend
    backend.execute(ops.Put("q", jid(2), "K", "{}", lease_ms=6000))
    backend.execute_calls([Call(2, ops.Pop("q", "other"))])
    looks = ShardLooks(backend, ["q"], range(N), "w")
    looks.look_at({2})
    now = time.monotonic()
    assert looks.listed(now, {2}) == set()
    assert looks.listed(now + 4, {2}) == {2}
    looks.forget(2, soon=False)
    assert looks.listed(now + 5.5, {2}) == {2}


def test_a_worker_that_stops_gives_back_what_it_holds(client: Client, url: str) -> None:
    begun = threading.Event()
    over = threading.Event()

    def long(n: int) -> None:
        begun.set()
        over.wait(60)

    worker = Worker(app_of(url, long), concurrency=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    job = client.queues["default"].put("work", {"n": 1}, jid=jid(4))
    assert begun.wait(30)
    worker.stop(now=True)
    over.set()
    thread.join(60)
    assert client.jobs[job.jid].state in ("waiting", "complete")


# ---- replies that are lost


@pytest.fixture
def loses(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lose the reply to the first pop that gives a job of a shard, and call a function then."""
    made = Connection.try_calls

    def lose(of: int, then: Any) -> None:
        lost: list[Any] = []

        def try_calls(connection: Connection, calls: Any, seconds: float) -> list[Any]:
            replies = made(connection, calls, seconds)
            for at, call in enumerate(calls):
                if call.shard == of and isinstance(call.op, ops.Pop) and replies[at] and not lost:
                    lost.append(replies[at])
                    replies[at] = ConnectError("The node has hung up.", "Wait.")
                    then()
            return replies

        monkeypatch.setattr(Connection, "try_calls", try_calls)

    return lose


def test_a_job_that_comes_when_its_node_is_back_and_its_worker_stops_is_given_back(
    client: Client, url: str, loses: Any
) -> None:
    done: list[int] = []
    begun, end = threading.Event(), threading.Event()

    def work(n: int) -> None:
        done.append(n)
        begun.set()
        assert end.wait(60)

    with at_work(app_of(url, work), concurrency=2) as worker:
        client.queues["default"].put("work", {"n": 0}, jid=jid(3))
        assert begun.wait(30)
        loses(4, worker.stop)
        job = client.queues["default"].put("work", {"n": 1}, jid=jid(4))
        wait_until(
            lambda: job.refresh().state == "waiting" and len(worker.running) == 1 and not worker._trips.unanswered
        )
        end.set()
    assert done == [0]
    assert (job.refresh().state, job.remaining) == ("waiting", job.retries)


def test_the_lease_of_a_job_that_comes_with_a_second_reply_began_before_the_first_one(
    client: Client, url: str, loses: Any
) -> None:
    began: list[float] = []
    lost: list[float] = []
    with at_work(app_of(url, lambda n: began.append(worker.running[0].at))) as worker:
        asleep(client)
        loses(4, lambda: lost.append(time.monotonic()))
        client.queues["default"].put("work", {"n": 1}, jid=jid(4))
        wait_until(lambda: began)
    assert began[0] < lost[0]  # else it would be renewed too late, by the time that the node was away


def test_a_worker_that_ends_without_the_answer_to_a_pop_says_so(
    client: Client, url: str, loses: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with at_work(app_of(url, print)) as worker:
        asleep(client)
        loses(4, worker.stop)
        job = client.queues["default"].put("work", {"n": 1}, jid=jid(4))
        wait_until(lambda: job.refresh().state == "running")
    assert "Jobs that it may have given to the last pop are left until their leases run out." in caplog.text


# ---- a node that hangs


@pytest.fixture
def two_nodes(tmp_path: Any) -> Iterator[tuple[str, list[Any]]]:
    """Two masters of a cluster, without replicas."""
    from tests.backends.conftest import PROGRAMS
    from tests.clusters import Node

    if not PROGRAMS:
        pytest.skip("no server")
    own = ("--cluster-enabled", "yes", "--cluster-node-timeout", "60000", "--save", "", "--appendonly", "no")
    made = [Node(PROGRAMS[0].program, tmp_path, *own, "--cluster-require-full-coverage", "no") for _ in range(2)]
    try:
        for number, node in enumerate(made):
            node.start()
            node.ask("CLUSTER", "ADDSLOTSRANGE", number * 8192, number * 8192 + 8191)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        made[1].ask("CLUSTER", "MEET", "127.0.0.1", made[0].port)
        wait_until(lambda: all(node.ask("CLUSTER INFO")["cluster_known_nodes"] == "2" for node in made))
        wait_until(lambda: all(node.ask("CLUSTER INFO")["cluster_state"] == "ok" for node in made))
        hosts = ",".join(node.address for node in made)
        yield f"redis+cluster://{hosts}/0?name=shop&shards={N}", made
    finally:
        for node in made:
            if node.process is not None:
                node.process.send_signal(signal.SIGCONT)
            node.kill()


@pytest.mark.server
def test_a_worker_goes_on_with_other_shards_while_a_node_hangs(two_nodes: tuple[str, list[Any]]) -> None:
    url, nodes = two_nodes
    done: list[int] = []
    with Client(url) as client, at_work(app_of(url, done.append), concurrency=2):
        backend = client.backend
        assert isinstance(backend, RedisDeployment)
        hung = {shard for shard in range(N) if backend.shards[shard].at["port"] == nodes[1].port}
        assert 0 < len(hung) < N
        there, here = min(hung), min(set(range(N)) - hung)
        client.queues["default"].put("work", {"n": 0}, jid=jid(there))
        wait_until(lambda: done == [0])
        with nodes[1].stopped():
            for number in range(1, 6):
                client.queues["default"].put("work", {"n": number}, jid=jid(here, number))
                wait_until(lambda number=number: number in done)  # type: ignore[misc]
        client.queues["default"].put("work", {"n": 9}, jid=jid(there, 9))
        wait_until(lambda: 9 in done)
    assert sorted(done) == [0, 1, 2, 3, 4, 5, 9]


@pytest.mark.server
def test_a_job_that_ends_while_its_node_hangs_and_its_worker_stops_is_reported(
    two_nodes: tuple[str, list[Any]],
) -> None:
    url, nodes = two_nodes
    begun, end = threading.Event(), threading.Event()

    def long(n: int) -> bool:
        begun.set()
        return end.wait(60)

    with Client(url) as client:
        backend: Any = client.backend
        there = next(shard for shard in range(N) if backend.shards[shard].at["port"] == nodes[1].port)
        with at_work(app_of(url, long)) as worker:
            job = client.queues["default"].put("work", {"n": 0}, jid=jid(there))
            assert begun.wait(30)
            worker.stop()
            with nodes[1].stopped():
                end.set()
                wait_until(lambda: worker._trips.unanswered)
        assert client.jobs[job.jid].state == "complete"

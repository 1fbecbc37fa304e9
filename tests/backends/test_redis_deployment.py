"""`redis+cluster://…?name=shop&shards=8`: a deployment on nodes whose slots move, and which die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import CliRunner
from redis.crc import key_slot

from qmodel.backends.redis.aio_deployment import AsyncRedisDeployment
from qmodel.backends.redis.backend import settings_of_master
from qmodel.backends.redis.connect import connect, connect_async
from qmodel.backends.redis.deployment import RedisDeployment
from qmodel.backends.redis.shards import prefix_of
from qmodel.backends.redis.url import options_of
from qmodel.cli import cli
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.routing import SLOTS, shard_tag
from qmodel.errors import ConnectError, RefusedError
from qmodel.model.deployment.plans import Call
from tests.backends.conftest import PROGRAMS
from tests.backends.helpers import Private, Starter
from tests.backends.test_routes import CLUSTER, SERVER
from tests.clusters import Cluster, Node, cluster, stopped, wait_until
from tests.servers import NOTHING_FOUND, Server

N = 6


# ---- names and URLs


def test_shards_have_slots_in_equal_ranges_and_the_first_is_the_same_for_every_number() -> None:
    for shards in (1, 8, 64):
        prefixes = [prefix_of("shop", shard, shards) for shard in range(shards)]
        assert [key_slot(one.encode()) * shards // SLOTS for one in prefixes] == list(range(shards))
    assert len({prefix_of("shop", 0, shards) for shards in (1, 2, 64, 1024)}) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+cluster://a/0?name=shop&shards=6", "cannot have 6 shards"),
        (f"redis+cluster://a/0?name=shop&shards={'1' * 5000}", "cannot have 1{20} shards"),
        ("redis+cluster://a/0?name=shop&single=x", "has single, but not how many shards"),
        ("redis+cluster://a/0?shards=8", "no name for the deployment"),
        ("redis+cluster://a/0?name=shop&prefix={a}:", "Leave out one of them"),
        ("redis+cluster://a/0?name={shop}&shards=8", r"name=\{shop\} is not the name of a deployment"),
    ],
)
def test_a_url_of_a_deployment_that_cannot_be_is_refused(url: str, said: str) -> None:
    with pytest.raises(ConnectError, match=said):
        options_of(url)


def test_what_needs_a_namespace_refuses_a_deployment() -> None:
    with pytest.raises(ConnectError, match="needs one namespace"):
        settings_of_master("redis://localhost/0?name=shop&shards=8")


def test_another_layout_is_refused_and_none_is_taken_from_the_server(server: Server) -> None:
    url = f"{server.url}?name={os.urandom(6).hex()}"
    with pytest.raises(ConnectError, match="There is no deployment"):
        connect(url)
    first = connect(f"{url}&shards=4&single=a,b")
    for other in ("&shards=8", "&shards=4", "&shards=4&single=a,b&split=t"):
        with pytest.raises(ConnectError, match="another layout: shards=4&single=a,b"):
            connect(url + other)
    second = connect(url)
    assert isinstance(second, RedisDeployment) and isinstance(first, RedisDeployment)
    assert second.layout == first.layout and second.layout.shards == 4
    first.close()
    second.close()


def test_of_two_who_create_it_at_once_one_wins(server: Server) -> None:
    url = f"{server.url}?name={os.urandom(6).hex()}"
    begin, found = threading.Barrier(6), []

    def create(shards: int) -> None:
        begin.wait()
        with contextlib.suppress(ConnectError):
            found.append(connect(f"{url}&shards={shards}"))

    threads = [threading.Thread(target=create, args=(2 ** (1 + number % 2),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({one.layout.shards for one in found}) == 1 and found  # type: ignore[attr-defined]
    for one in found:
        one.close()


# ---- one round trip to each node


@pytest.fixture
def backend(server: Server) -> Iterator[RedisDeployment]:
    made = connect(f"{server.url}?name={os.urandom(6).hex()}&shards=8")
    assert isinstance(made, RedisDeployment)
    yield made
    made.close()


def jid(shard: int, number: int = 0) -> str:
    return f"j{number}{{{shard_tag(shard, 8)}}}"


def test_the_calls_of_all_shards_on_a_node_share_a_round_trip(backend: RedisDeployment) -> None:
    puts = [ops.Put("q", jid(number % 8, number), "K", "{}") for number in range(40)]
    assert backend.execute_many([*puts, ops.Length("q"), ops.Get(jid(3, 3))])[-2] == 40
    idle = sum(len(line.idle) for line in backend.nodes.lines)
    assert idle == 1
    refused = backend.execute_many([ops.Get("x"), ops.Cancel(("a", "b")), ops.Length("q"), ops.Put("q", "", "K", "{}")])
    assert [getattr(one, "code", one) for one in refused] == [None, "CROSS_SHARD", 40, "BAD_ARGUMENT"]


def test_a_wake_up_that_comes_beside_another_one_is_given_back(backend: RedisDeployment) -> None:
    """Two idle workers wait for two shards each; one of them is woken twice and needs one wake-up."""
    for shard in (2, 5):
        backend.execute_calls([Call(shard, ops.Pop("q", "w", 1, True))])
    backend.execute_calls([Call(shard, ops.Put("q", jid(shard), "K", "{}")) for shard in (2, 5)])
    assert backend.wait(["q"], 5)
    assert backend.wait(["q"], 5)
    assert not backend.wait(["q"], 0.05)


def test_a_wake_up_that_comes_beside_another_one_is_given_back_in_an_event_loop(
    backend: RedisDeployment, server: Server
) -> None:
    """The loop is held until both shards have answered, so that both waits end in the same turn of it."""

    async def run() -> list[bool]:
        waiting = connect_async(f"{server.url}?name={backend.options.name}&shards=8")
        first = asyncio.ensure_future(waiting.wait(["q"], 5))
        with redis.Redis.from_url(server.url) as raw:
            while raw.info("clients")["blocked_clients"] < 8:
                await asyncio.sleep(0.01)
        backend.execute_calls([Call(shard, ops.Pop("q", "w", 1, True)) for shard in (2, 5)])
        backend.execute_calls([Call(shard, ops.Put("q", jid(shard), "K", "{}")) for shard in (2, 5)])
        found = [await first, await waiting.wait(["q"], 5), await waiting.wait(["q"], 0.05)]
        await waiting.close()
        return found

    assert asyncio.run(run()) == [True, True, False]


@pytest.mark.parametrize("path", ["?prefix=loops:", "?name=loops&shards=2"])
def test_one_event_loop_after_the_other_may_wait(server: Server, path: str) -> None:
    waiting = connect_async(f"{server.url}{path}")
    for _ in range(2):
        assert asyncio.run(waiting.wait(["q"], 0.05)) is False
        assert asyncio.run(waiting.wait(["not\na queue"], 0.05)) is False  # it sleeps here, and not in the server


def test_a_process_that_forks_has_connections_of_its_own(backend: RedisDeployment) -> None:
    backend.execute(ops.Put("q", jid(1), "K", "{}"))
    before = {id(connection) for line in backend.nodes.lines for connection in line.idle}
    backend.leave_to_parent()  # what a child does first
    assert backend.execute(ops.Length("q")) == 1
    assert not before & {id(connection) for line in backend.nodes.lines for connection in line.idle}


def test_a_closed_deployment_wakes_those_who_wait(backend: RedisDeployment) -> None:
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(backend.wait(["q"], 60)))
    thread.start()
    wait_until(lambda: any(len(one.pending) == 8 for one in list(backend._waits)))
    backend.close()
    thread.join(60)
    assert got == [False]


def test_an_error_of_one_shard_is_raised_and_others_work(backend: RedisDeployment, server: Server) -> None:
    shard = backend.shards[3]
    with redis.Redis.from_url(server.url) as raw:
        raw.set(f"{shard.options.prefix}counters", "x")
        with pytest.raises(ConnectError, match="cannot be used"):
            backend.execute(ops.Put("q", jid(3), "K", "{}"))
        assert backend.execute(ops.Put("q", jid(4), "K", "{}")) == jid(4)


@pytest.mark.parametrize("identified", [False, True])
def test_a_task_does_not_wait_for_ever_for_a_server_that_hangs(private: Starter, identified: bool) -> None:
    """The server stops before it has answered the connections, or one that has said who it is."""

    async def run(server: Private) -> list[bool]:
        backend = connect_async(f"{server.url}?name=shop&shards=2&socket_timeout=0.3&deadline=5")
        assert isinstance(backend, AsyncRedisDeployment)
        await backend.execute(ops.Length("q"))
        if identified:
            assert not await backend.wait(["q"], 0.05)
        with stopped(server.process):
            return [await asyncio.wait_for(backend.wait(["q"], 0.1), 30)]

    with private() as server:
        assert asyncio.run(run(server)) == [False]


# ---- nodes


@SERVER
@CLUSTER
def test_shards_are_spread_over_the_nodes_and_any_node_leads_to_them(nodes: Cluster) -> None:
    name = os.urandom(6).hex()
    with Client(nodes.deployment(name, "shards=8")) as client:
        ports = [shard.at["port"] for shard in client.backend.shards]  # type: ignore[attr-defined]
        assert len(set(ports)) == 3  # how evenly, depends on the slots that other tests have moved
        jobs = [client.queues["q"].put("K", number) for number in range(16)]
    for node in nodes.nodes:
        with Client(f"redis+cluster://{node.address}/0?name={name}") as client:
            assert client.queues["q"].length() == 16
    with Client(f"redis://{nodes.nodes[0].address}/0?name={name}") as client:
        assert {job.jid for job in client.jobs.get_many([job.jid for job in jobs])} == {job.jid for job in jobs}


class Spread:
    """Threads that use a deployment, and note what was acknowledged and what was raised."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.put: list[str] = []
        self.done: list[str] = []
        self.raised: list[Exception] = []
        self.more = True
        self.threads = [threading.Thread(target=self._run, args=(use,)) for use in (self._puts, self._pops)]

    def __enter__(self) -> Spread:
        for thread in self.threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_: object) -> None:
        self.more = False
        for thread in self.threads:
            thread.join(60)

    def wait_for_more(self) -> None:
        put, done = len(self.put), len(self.done)
        wait_until(lambda: self.raised or (len(self.put) > put + 20 and len(self.done) > done + 20))

    def _run(self, use: Any) -> None:
        try:
            use()
        except Exception as error:
            self.raised.append(error)

    def _puts(self) -> None:
        with Client(self.url) as client:
            while self.more:
                self.put.append(client.queues["q"].put("K", 1).jid)

    def _pops(self) -> None:
        with Client(self.url, worker="w") as client:
            while self.more:
                if job := client.queues["q"].pop(timeout=1):
                    job.complete()
                    self.done.append(job.jid)

    def check(self) -> None:
        assert self.raised == []
        with Client(self.url) as client:
            assert len(client.jobs.get_many(self.put)) == len(self.put)
            assert all(job.state == "complete" for job in client.jobs.get_many(self.done))
        assert len(set(self.done)) == len(self.done)


def shard_on(nodes: Cluster, name: str, node: Node) -> str:
    return next(one for one in (prefix_of(name, at, 8) for at in range(8)) if nodes.owner(one) is node)


@SERVER
@CLUSTER
def test_a_shard_that_moves_and_a_node_that_dies_lose_nothing_and_raise_nothing(nodes: Cluster) -> None:
    name = os.urandom(6).hex()
    url = nodes.deployment(name, "shards=8", "confirm=1")
    with Spread(url) as load:
        with nodes.moving(shard_on(nodes, name, nodes.masters()[1])) as move:
            move.some()
        load.wait_for_more()
        dead = nodes.masters()[0]
        lost = shard_on(nodes, name, dead)
        dead.kill()
        wait_until(lambda: nodes.owner(lost) is not dead)
        dead.start()
        load.wait_for_more()
    load.check()
    nodes.wait_until_whole()


@SERVER
@CLUSTER
def test_a_node_that_hangs_holds_up_only_calls_for_its_shards(nodes: Cluster) -> None:
    name = os.urandom(6).hex()
    backend = connect(nodes.deployment(name, "shards=8", "deadline=30"))
    assert isinstance(backend, RedisDeployment)
    node = nodes.masters()[0]
    there = {at for at in range(8) if nodes.owner(prefix_of(name, at, 8)) is node}
    try:
        backend.execute(ops.Length("q"))
        with node.stopped():
            replies = backend.try_calls([Call(shard, ops.Length("q")) for shard in range(8)], 0.3)
            assert {at for at, reply in enumerate(replies) if isinstance(reply, ConnectError)} == there
            assert [backend.execute(ops.Get(jid(at))) for at in range(8) if at not in there] == [None] * (
                8 - len(there)
            )
    finally:
        wait_until(lambda: backend.execute(ops.Length("q")) == 0)
        backend.close()
        nodes.wait_until_whole()


@SERVER
def test_the_doctor_names_the_nodes_whose_settings_lose_jobs(nodes: Cluster) -> None:
    url = nodes.deployment("settings", "shards=8")
    with Client(url) as client:
        backend: Any = client.backend
        node = next(one for one in nodes.masters() if str(one.port) in str(backend.shards[5].at))
        shards = backend.neighbours(5)
    kept = node.client.config_get("appendonly")["appendonly"]
    node.client.config_set("appendonly", "no" if kept == "yes" else "yes")
    try:
        found = CliRunner().invoke(cli, ["--url", url, "doctor"]).output
    finally:
        node.client.config_set("appendonly", kept)
    lost, fine = ("all jobs are lost|appendonly is no: when", "the settings of the server are correct")
    here, elsewhere = (lost, fine) if kept == "yes" else (fine, lost)
    assert re.search(f"node of shard {shards[0]}: .*({here})", found), found
    assert re.search(f"node of shard [^{shards[0]}]+: .*({elsewhere})", found), found


@SERVER
@CLUSTER
def test_a_backup_of_nodes_that_serve_is_restored(tmp_path: Path) -> None:
    """The folders of all nodes are copied, one after the other, and put back when the nodes are gone."""
    program = next((one.program for one in PROGRAMS if one.program), None) or pytest.skip(NOTHING_FOUND)
    with cluster(program) as nodes:
        url = nodes.deployment("shop", "shards=8")
        with Client(url, worker="w") as client:
            queue = client.queues["q"]
            jids = [queue.put("K", number).jid for number in range(40)]
            kept = queue.pop()
            assert kept is not None
            before = {one.raw.token for one in (kept,)}
            for node in nodes.masters():  # while the disk is busy, a node keeps what it acknowledged in memory
                wait_until(lambda node=node: node.client.info("persistence")["aof_buffer_length"] == 0)  # type: ignore[misc]
            with Spread(url):
                for node in nodes.nodes:
                    shutil.copytree(node.folder, tmp_path / str(node.port))
            lost = [queue.put("K", number).jid for number in range(40)]
            late = queue.pop(20)
            before |= {job.raw.token for job in late}
        nodes.stop()
        for node in nodes.nodes:
            shutil.rmtree(node.folder)
            shutil.copytree(tmp_path / str(node.port), node.folder)
        for node in nodes.nodes:
            node.start()
        nodes.wait_until_whole()
        with Client(url, worker="w") as client:
            assert {job.jid for job in client.jobs.get_many(jids)} == set(jids)
            assert client.jobs.get_many(lost) == []
            with pytest.raises(RefusedError):
                client.execute(ops.Complete(late[0].jid, late[0].raw.token))
            again = [job for job in client.queues["q"].pop(100) if job.jid != kept.jid]
            assert again and not before & {job.raw.token for job in again}
        done = CliRunner().invoke(cli, ["--url", url, "doctor"])
        assert "FAIL" not in done.output, done.output

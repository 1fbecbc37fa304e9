"""Finding the master again: in a cluster whose nodes die and whose slots move, and by sentinels. Confirmed calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from click.testing import CliRunner

from qmodel import runtime
from qmodel.backends import bundle
from qmodel.backends.redis import route
from qmodel.backends.redis.confirm import Confirm, check_confirm
from qmodel.backends.redis.connect import connect
from qmodel.backends.redis.resend import AT_ONCE, Attempts
from qmodel.backends.redis.route import Route
from qmodel.backends.redis.take_snapshot import taken
from qmodel.backends.redis.url import Address, options_of
from qmodel.cli import cli
from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.contract.operations import Length, Log, Put
from qmodel.contract.refusals import Refusal
from qmodel.doctor.copies import _seeds, copies
from qmodel.doctor.findings import FAIL, OK, WARN
from qmodel.errors import ConnectError, JobNotFound, LockLost, NotConfirmed
from tests.backends.conftest import PROGRAMS
from tests.backends.helpers import Starter
from tests.backends.test_reliability import opened
from tests.clusters import Cluster, Node, Watched, free_port, wait_until, watched
from tests.servers import NOTHING_FOUND

KINDS = pytest.mark.parametrize("kind", ["sync", "async"])
SERVER = pytest.mark.server
CLUSTER = pytest.mark.xdist_group("cluster")
"""One process runs these tests and those of test_redis_deployment.py, with one cluster."""


@pytest.fixture(scope="module", params=PROGRAMS or [None], ids=lambda found: found.name if found else "none")
def pair(request: pytest.FixtureRequest) -> Iterator[Watched]:
    if request.param is None:
        pytest.skip(NOTHING_FOUND)
    with watched(request.param.program) as made:
        yield made


# ---- the search, without servers


def test_a_url_names_several_nodes() -> None:
    found = options_of("rediss+cluster://user:p%40ss@one:7001,[::1]:7002,three/0?prefix={a}:&sentinel_password=x")
    assert found.kind == "cluster"
    assert found.seeds == (Address("one", 7001), Address("::1", 7002), Address("three", 6379))
    assert found.connection["password"] == "p@ss" and found.connection["db"] == 0
    found = options_of("valkey+sentinel://:p@one,two:7/shop/2?prefix=a:&sentinel_username=u&sentinel_password=x")
    assert found.service == "shop" and found.connection["db"] == 2
    assert found.seeds == (Address("one", 26379), Address("two", 7))
    assert found.sentinel == {"username": "u", "password": "x"}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://one,two/0", "names several servers"),
        ("redis+sentinel://one,two", "does not name the master"),
        ("redis+cluster://one:x/0", "is not a URL"),
        ("redis://:secret@[::1", r"'redis://:\*\*\*@\[::1' is not a URL of a server: Invalid IPv6 URL"),
        ("redis://one/shop", "'redis://one/shop' has no number of a database in its path"),
        ("redis+sentinel://one,two/shop/x", "has no number of a database in its path"),
        ("redis://one/1/2", "has no number of a database in its path"),
        ("redis://one?confirm=0", "confirm=0 is not a number of replicas"),
        ("redis://one?confirm=disk", "confirm=disk is not"),
        ("redis://one?max_age=0", "max_age=0 is not"),
        ("redis://one?credentials=secret", "credentials=secret is not a module and a name"),
        ("redis://one?credentials=no.such:thing", "cannot be loaded"),
        ("redis://one?credentials=os:getcwd", "gives no provider: str"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused(url: str, said: str) -> None:
    with pytest.raises(ConnectError, match=said):
        options_of(url)


def test_the_node_that_failed_is_asked_last() -> None:
    made = Route(options_of("redis+cluster://one,two/0?prefix={a}:"))
    slots = [[0, 16383, [b"one", 6379, b"id"], [b"three", 6379, b"id"]]]
    assert list(made.to_ask()) == [("one", 6379), ("two", 6379)]
    assert made.learn(Address("two", 6379), slots) and made.master == ("one", 6379)
    asked = list(made.to_ask())
    assert sorted(asked[:2]) == [("three", 6379), ("two", 6379)] and asked[2:] == [("one", 6379)]


def test_an_unknown_host_is_the_one_that_was_asked() -> None:
    made = Route(options_of("redis+cluster://one/0?prefix={a}:"))
    for host in (None, b"", b"?"):
        assert made.learn(Address("one", 1), [[0, 16383, [host, 7, b"id"]]]) and made.master == ("one", 7)


def test_a_slot_that_nobody_serves_is_no_answer() -> None:
    made = Route(options_of("redis+cluster://one/0?prefix={a}:"))
    assert not made.learn(Address("one", 1), [[0, 1, [b"one", 7, b"id"]]])
    assert not Route(options_of("redis+sentinel://one/shop")).learn(Address("one", 1), None)


def test_moved_is_followed_without_a_pause_a_few_times() -> None:
    attempts = Attempts(60, "there")
    moved = redis.exceptions.MovedError("1 one:1")
    assert [attempts.delay(moved) for _ in range(AT_ONCE)] == [0.0] * AT_ONCE
    assert any(attempts.delay(moved) > 0 for _ in range(20))


def test_ask_is_waited_out_at_the_same_node() -> None:
    made = Route(options_of("redis+cluster://one/0?prefix={a}:"))
    ask = redis.exceptions.AskError("1 two:2")
    assert not made.follow(ask) and not made.is_due(ask) and made.master is None
    assert made.follow(redis.exceptions.MovedError("1 two:2")) and made.master == ("two", 2)


# ---- a cluster


@SERVER
@CLUSTER
@KINDS
def test_any_node_leads_to_the_master(kind: str, nodes: Cluster) -> None:
    for node in nodes.nodes:
        for name in ("a", "b", "c"):
            backend = opened(kind, f"redis://{node.address}/0?prefix={{{name}}}:{kind}:&deadline=30")
            assert not isinstance(backend.execute(Put("q", f"{node.port}", "K", "")), Refusal)
            assert backend.at["port"] == nodes.owner(f"{{{name}}}:").port
            backend.close()
    dead = f"127.0.0.1:{free_port()}"
    backend = opened(kind, f"redis+cluster://{dead},{nodes.nodes[5].address}/0?prefix={{a}}:{kind}:")
    assert backend.execute(Length("q")) == len(nodes.nodes)
    backend.close()


PACE = 0.002
"""Seconds between two puts: servers and sentinels need the processor too."""


class Load:
    """Threads that use a namespace: they put, pop, wait, and note what was acknowledged and what was raised.

    Without a confirmation a failover may lose a lease, or a job: a worker is refused then, which is no fault.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.lost = () if "confirm=" in url else (LockLost, JobNotFound)
        self.put: list[str] = []
        self.done: list[str] = []
        self.raised: list[Exception] = []
        self.more = True
        users = (self._puts, self._puts_in_a_loop, self._pops, self._pops)
        self.threads = [threading.Thread(target=self._run, args=(number, use)) for number, use in enumerate(users)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_: object) -> None:
        self.more = False
        for thread in self.threads:
            thread.join(60)

    def wait_for_more(self) -> None:
        """Wait until calls of all kinds were answered after this moment."""
        put, done = len(self.put), len(self.done)
        wait_until(lambda: self.raised or (len(self.put) > put + 20 and len(self.done) > done + 20))

    def _run(self, number: int, use: Callable[[int], None]) -> None:
        try:
            use(number)
        except Exception as error:
            self.raised.append(error)

    def _puts(self, number: int) -> None:
        with Client(self.url) as client:
            while self.more:
                self.put.append(client.queues["q"].put("K", 1, jid=f"{number}-{len(self.put)}").jid)
                time.sleep(PACE)

    def _puts_in_a_loop(self, number: int) -> None:
        async def puts() -> None:
            async with AsyncClient(self.url) as client:
                while self.more:
                    job = await client.queues["q"].put("K", 1, jid=f"{number}-{len(self.put)}")
                    self.put.append(job.jid)
                    await asyncio.sleep(PACE)

        asyncio.run(puts())

    def _pops(self, number: int) -> None:
        with Client(self.url, worker=f"w{number}") as client:
            while self.more:
                if job := client.queues["q"].pop(timeout=1):
                    with contextlib.suppress(*self.lost):
                        job.complete()
                    self.done.append(job.jid)

    def check(self) -> None:
        """Nothing was raised, and everything that was acknowledged is there, done once if it was done."""
        assert self.raised == []
        with Client(self.url) as client:
            assert [jid for jid in self.put if client.jobs.get(jid) is None] == []
            assert [jid for jid in set(self.done) if client.jobs[jid].state != "complete"] == []
        assert len(set(self.done)) == len(self.done)


@SERVER
@CLUSTER
def test_a_slot_that_moves_key_by_key_loses_nothing_and_raises_nothing(nodes: Cluster) -> None:
    prefix = "{moved}:"
    with Load(nodes.url(prefix, "confirm=1")) as load:
        for _ in range(2):
            before = nodes.owner(prefix)
            with nodes.moving(prefix) as move:
                move.some()
                time.sleep(0.3)  # calls come in the middle of the move, and are answered ASK
            assert nodes.owner(prefix) is not before
            load.wait_for_more()
    load.check()


@SERVER
@CLUSTER
def test_a_client_that_follows_ask_does_nothing_on_a_part_of_the_keys(nodes: Cluster) -> None:
    prefix = "{half}:"
    with Client(nodes.url(prefix)) as client:
        client.config["heartbeat"] = 30
        for number in range(5):
            client.queues["q"].put("K", 1, jid=f"j{number}")
        with nodes.moving(prefix) as move:
            move.target.ask("FUNCTION", "LOAD", "REPLACE", bundle.library())
            move.keys(*(prefix + name for name in ("counters", "config", "q:q-state", "j:j1")))
            for call in (("length", "q"), ("put", "q", "j1", "K2", "{}"), ("pop", "q", "w")):
                with pytest.raises(redis.ResponseError, match=r"non local key|TRYAGAIN"):
                    follow_ask(move.target, prefix, *call)
        assert client.queues["q"].length() == 5
        assert client.jobs["j1"].klass == "K"


def follow_ask(node: Node, prefix: str, operation: str, *arguments: str) -> None:
    """Call an operation as a client does that was answered ASK."""
    with node.client.client() as one:
        one.execute_command("ASKING")
        one.execute_command("FCALL", bundle.function_name(operation), "1", prefix, "", "", *arguments)


@SERVER
@CLUSTER
@KINDS
def test_who_waits_follows_a_slot_that_moves(kind: str, nodes: Cluster) -> None:
    prefix = f"{{waits-{kind}}}:"
    got: list[Any] = []

    def waits() -> None:
        if kind == "sync":
            with Client(nodes.url(prefix)) as client:
                got.append(client.queues["q"].pop(timeout=60))
        else:

            async def pop() -> None:
                async with AsyncClient(nodes.url(prefix)) as client:
                    got.append(await client.queues["q"].pop(timeout=60))

            asyncio.run(pop())

    thread = threading.Thread(target=waits)
    thread.start()
    wait_until(lambda: blocked(nodes.owner(prefix)))
    with nodes.moving(prefix):
        pass
    with Client(nodes.url(prefix)) as client:
        client.queues["q"].put("K", 1, jid="late")
        thread.join(60)
    assert [job.jid for job in got] == ["late"]


def blocked(node: Node) -> int:
    return int(node.client.info("clients")["blocked_clients"])


@SERVER
@CLUSTER
def test_a_killed_master_is_left_for_the_promoted_one(nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was acknowledged with confirm=1 is there after the failover. Whoever learns of the new master goes there."""
    prefix = "{killed}:"
    dead = nodes.owner(prefix)
    learned: list[tuple[int, Address | None]] = []
    learn = Route.learn

    def noted(self: Route, asked: Address, reply: Any) -> bool:
        found = learn(self, asked, reply)
        learned.append((id(self), self.master))
        return found

    with Load(nodes.url(prefix, "confirm=1")) as load, Load(nodes.url("{killed}:other:")) as other:
        monkeypatch.setattr(Route, "learn", noted)
        dead.kill()
        wait_until(lambda: nodes.owner(prefix) is not dead)
        new = nodes.owner(prefix)
        other.wait_for_more()  # while nobody at the old address could answer MOVED
        dead.start()  # it comes back as a replica, which confirms again
        load.wait_for_more()
        assert new.role() == "master"
    load.check()
    assert other.raised == []
    masters = [master.port for _, master in learned if master is not None]
    found = masters.index(new.port)
    assert set(masters[:found]) <= {dead.port}, "nobody went astray"
    of_each = {who: [master.port for one, master in learned if one == who and master] for who, _ in learned}
    assert all(ports.count(new.port) <= 2 for ports in of_each.values()), "who had found it looked no further"
    nodes.wait_until_whole()


def test_a_failover_is_looked_for_at_short_intervals() -> None:
    assert Route(options_of("redis+cluster://one/0?prefix={a}:")).longest_pause == route.LONGEST_PAUSE <= 0.5


@SERVER
@CLUSTER
def test_a_plain_url_of_a_cluster_survives_the_death_of_its_node(nodes: Cluster) -> None:
    prefix = "{plain}:"
    dead = nodes.owner(prefix)
    with Client(f"redis://{dead.address}/0?prefix={prefix}") as client:
        client.queues["q"].put("K", 1, jid="a")
        wait_until(lambda: dead.client.wait(1, 1000))
        dead.kill()
        assert client.jobs["a"].state == "waiting"
        wait_until(lambda: nodes.owner(prefix) is not dead)  # the other nodes hear of the promotion a little later
        assert client.backend.at["port"] == nodes.owner(prefix).port
    dead.start()
    nodes.wait_until_whole()


# ---- sentinels


@SERVER
@CLUSTER
@pytest.mark.slow
def test_sentinels_lead_to_the_master_that_they_promote(pair: Watched) -> None:
    dead = pair.servers[0]
    with Load(pair.url("a:", "confirm=1")) as load, Load(pair.url("b:")) as other:
        dead.kill()
        wait_until(lambda: pair.servers[1].role() == "master")
        other.wait_for_more()
        dead.start()  # sentinels make it a replica, which confirms again
        load.wait_for_more()
    load.check()
    assert other.raised == []
    wait_until(lambda: sorted(server.role() for server in pair.servers) == ["master", "slave"])
    with Client(pair.url("a:")) as client:  # a busy machine may make them promote the first one again
        assert client.backend.at["port"] in [server.port for server in pair.servers if server.role() == "master"]


@SERVER
@CLUSTER
@KINDS
def test_what_sentinels_cannot_say_is_told(kind: str, pair: Watched) -> None:
    hosts = ",".join(one.address for one in pair.sentinels)
    with pytest.raises(ConnectError, match="no sentinel knows a master of the name other"):
        opened(kind, f"redis+sentinel://{hosts}/other/0?deadline=0").execute(Length("q"))
    with pytest.raises(ConnectError, match="is no sentinel"):
        opened(kind, f"redis+sentinel://{pair.servers[1].address}/shop/0?deadline=0").execute(Length("q"))
    with pytest.raises(ConnectError, match="is no cluster"):
        opened(kind, f"redis+cluster://{pair.servers[1].address}/0?prefix={{a}}:&deadline=0").execute(Length("q"))


# ---- confirmed calls


@SERVER
@CLUSTER
@KINDS
def test_what_no_replica_has_is_not_confirmed_and_a_resend_confirms_it(kind: str, nodes: Cluster) -> None:
    prefix = f"{{confirmed-{kind}}}:"
    master = nodes.owner(prefix)
    port = master.ask("ROLE")[2][0][1]
    replica = next(node for node in nodes.nodes if str(node.port) == str(port))
    url = nodes.url(prefix, "confirm=1", "deadline=0.5")
    with Client(nodes.url(prefix)) as other:
        other.queues["q"].put("K", 1, jid="before")
    backend = opened(kind, url)
    assert backend.execute(Length("q")) == 1  # connected while the replica answered
    with replica.stopped():
        with pytest.raises(NotConfirmed, match="0 of 1 replicas") as first:
            backend.execute(Put("q", "a", "K", "", request="r1"))
        assert backend.execute(Length("q")) == 2, "it was executed, and reads are not confirmed"
        assert first.value.replies == ["a"]
        with pytest.raises(NotConfirmed, match="0 of 1 replicas"):
            opened(kind, url).execute_many(first.value.operations)  # writes nothing, on a connection that wrote nothing
        assert isinstance(backend.execute(Log("nobody", "m")), Refusal), "a refusal changed nothing"
    patient = opened(kind, nodes.url(prefix, "confirm=1"))
    assert patient.execute_many(first.value.operations) == ["a"]
    assert patient.execute(Length("q")) == 2
    for one in (backend, patient):
        one.close()


@SERVER
@CLUSTER
def test_a_client_confirms_call_by_call(nodes: Cluster) -> None:
    with Client(nodes.url("{by-call}:", "deadline=0.5")) as client:
        client.queues["q"].put("K", 1)
        client.confirmed(replicas=1).queues["q"].put("K", 2)
        with pytest.raises(NotConfirmed, match="1 of 2 replicas have it"):
            client.confirmed(replicas=1).confirmed(replicas=2).queues["q"].put("K", 3)
        assert client.queues["q"].length() == 3
        with pytest.raises(ConnectError, match="takes replicas"):
            client.confirmed(replicas=1, local=True)


@SERVER
@CLUSTER
def test_the_command_line_says_that_it_was_executed(nodes: Cluster) -> None:
    url = nodes.url("{by-command}:", "confirm=2", "deadline=0.5")
    done = CliRunner().invoke(cli, ["--url", url, "put", "q", "K", "{}", "--jid", "a"], prog_name="qmodel")
    assert done.exit_code == 69
    assert "executed it, and did not confirm it within 0.5 seconds: 1 of 2 replicas have it." in done.output
    assert "To try:" not in done.output
    done = CliRunner().invoke(cli, ["--url", url, "--json", "put", "q", "K", "{}", "--jid", "a"], prog_name="qmodel")
    assert json.loads(done.output)["unconfirmed"] == url


@SERVER
@CLUSTER
async def test_a_client_in_a_loop_confirms_call_by_call(nodes: Cluster) -> None:
    async with AsyncClient(nodes.url("{by-call-aio}:", "deadline=0.5")) as client:
        await client.confirmed(replicas=1).queues["q"].put("K", 2)
        with pytest.raises(NotConfirmed, match="1 of 2 replicas have it"):
            await client.confirmed(replicas=2).queues["q"].put("K", 3)
        assert await client.queues["q"].length() == 2


def test_jobs_in_this_process_need_no_confirmation() -> None:
    with Client("memory://") as client:
        assert client.confirmed(replicas=1).queues["q"].put("K", 1).state == "waiting"
        assert client.queues["q"].length() == 1


@SERVER
@KINDS
def test_the_disk_confirms(kind: str, private: Starter) -> None:
    with private("--appendonly", "yes", "--appendfsync", "always") as server:
        try:
            backend = opened(kind, server.url + "?confirm=local")
            backend.execute(Length("q"))
        except ConnectError as error:
            assert "has no WAITAOF" in str(error) and server.client().info()["redis_version"] < "7.2"
            return
        assert backend.execute_many([Put("q", str(n), "K", "") for n in range(600)]) == [str(n) for n in range(600)]
        backend.close()
        server.kill()
        server.start()
        assert connect(server.url).execute(Length("q")) == 600


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"redis_version": "7.0.15"}, "is Redis 7.0.15, which has no WAITAOF"),
        ({"redis_version": "7.4.1", "aof_enabled": "0"}, "has appendonly no"),
        ({"redis_version": "7.4.1", "server_name": "qmodel"}, "is qmodel serve"),
        ({"redis_version": "7.4.1", "appendfsync": "everysec"}, "answers WAITAOF before its disk has anything"),
        ({"redis_version": "8.2", "appendfsync": "everysec", "server_name": "valkey"}, "answers WAITAOF before"),
    ],
)
def test_a_server_that_cannot_confirm_is_refused_by_name(facts: dict[str, str], said: str) -> None:
    with pytest.raises(ConnectError, match=said):
        check_confirm(Confirm(local=True), facts, "redis://there")


def test_a_server_that_can_confirm_is_not_refused() -> None:
    for fsync, version in (("always", "7.2.4"), ("everysec", "8.0.1")):
        check_confirm(Confirm(local=True), {"redis_version": version, "appendfsync": fsync}, "redis://there")
    check_confirm(Confirm(replicas=1), {"redis_version": "6.2"}, "redis://there")


@SERVER
@CLUSTER
def test_a_server_that_confirms_too_early_is_refused_for_single_calls_too(nodes: Cluster) -> None:
    with Client(nodes.url("{early}:")) as client, pytest.raises(ConnectError, match="WAITAOF"):
        client.confirmed(local=True)


# ---- credentials


class Provider(redis.CredentialProvider):
    """Gives the password that a test has set last."""

    password = "first"
    asked = 0

    def get_credentials(self) -> tuple[str, str]:
        type(self).asked += 1
        return "shop", type(self).password


@SERVER
@KINDS
def test_a_password_that_changes_is_asked_for_again(kind: str, private: Starter) -> None:
    with private() as server, server.client() as root:
        root.execute_command("ACL", "SETUSER", "shop", "on", ">first", "~*", "&*", "+@all")
        Provider.password = "first"
        backend = opened(kind, f"{server.url}?credentials={__name__}:Provider")
        assert backend.execute(Put("q", "a", "K", "")) == "a"
        root.execute_command("ACL", "SETUSER", "shop", "resetpass", ">second")
        root.execute_command("CLIENT", "KILL", "USER", "shop")
        late = threading.Timer(0.3, setattr, (Provider, "password", "second"))
        late.start()  # the new password is known later than the server asks for it
        assert backend.execute(Put("q", "b", "K", "")) == "b"
        late.join()
        backend.close()


@SERVER
def test_connections_have_a_greatest_age(private: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    with private() as server:
        made = connect(server.url + "?max_age=60")
        first = made._line
        made.execute(Length("q"))
        assert made._line is first
        monkeypatch.setattr(runtime, "monotonic", lambda real=time.monotonic: real() + 61)
        made.execute(Length("q"))
        assert made._line is not first and first.over and not first.idle
        made.execute(Length("q"))


# ---- what the doctor says


class Asked:
    """What the doctor is asked about: a URL."""

    look_at_keys, url_from = False, "a test"

    def __init__(self, url: str) -> None:
        self.url, self.client = url, Client(url)


def said(url: str) -> dict[str, str]:
    """The findings of the check of copies, with their levels."""
    at = Asked(url)
    with at.client:
        return {finding.what: finding.level for finding in copies(at)}


def test_the_doctor_says_what_to_do_about_silent_nodes() -> None:
    silent = [Address("b", 2)]
    options = SimpleNamespace(kind="cluster", seeds=(Address("a", 1), *silent))
    backend = SimpleNamespace(options=options, at={"host": "a", "port": 1}, silent_seeds=lambda: silent)
    (found,) = _seeds(backend)
    assert found.fix.startswith("Start them, or name other nodes in the URL")


@SERVER
@CLUSTER
def test_the_doctor_shows_copies_and_seeds(nodes: Cluster) -> None:
    prefix = "{doctor}:"
    found = said(nodes.url(prefix))
    here = f"the master is {nodes.owner(prefix).address}"
    assert found[f"{here}; all 3 nodes in the URL answer"] == OK
    lost = "a failover loses what replicas do not have yet: the server has 1 replica; min-replicas-to-write is 0"
    assert found[lost] == WARN
    assert found["appendfsync is everysec: a power failure loses the last second or two"] == OK
    assert said(nodes.url(prefix, "confirm=1"))["the server has 1 replica; min-replicas-to-write is 0; confirm=1"] == OK
    assert FAIL in said(nodes.url(prefix, "confirm=2")).values()
    dead = f"127.0.0.1:{free_port()}"
    found = said(f"redis+cluster://{dead},{nodes.nodes[0].address}/0?prefix={prefix}")
    assert found[f"{here}; of 2 nodes in the URL these do not answer: {dead}"] == WARN


@SERVER
def test_the_doctor_says_that_a_server_takes_no_writes_without_replicas(private: Starter) -> None:
    with private() as server:
        assert said(server.url)["the server has 0 replicas; min-replicas-to-write is 0"] == OK
        server.client().config_set("min-replicas-to-write", 1)
        assert said(server.url)["the server takes no writes: it has 0 replicas; min-replicas-to-write is 1"] == FAIL


@SERVER
@CLUSTER
def test_a_snapshot_is_taken_from_the_master_that_the_url_leads_to(nodes: Cluster) -> None:
    url = nodes.url("{taken}:")
    with Client(url) as client:
        client.queues["q"].put("K", 1, jid="a")
    assert list(taken(url).jobs) == ["a"]

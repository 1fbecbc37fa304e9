"""What a server loses is never handed out again: failovers, failbacks, restores and restarts on real servers."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import qmodel
from bench.storm.line import Line, Network
from qmodel.contract import operations as ops
from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.contract.events import Event
from qmodel.errors import Forked, LockLost
from tests.backends.helpers import Private, Starter

REPLICATES = ("--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "10mb")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Pair:
    """Two servers; `follow` makes one a replica of the other, and waits until it has everything."""

    def __init__(self, servers: list[Private], ports: list[int]) -> None:
        self.servers, self.ports = servers, ports
        self.raw = [server.client() for server in servers]

    def connect(self, which: int, more: str = "") -> qmodel.Client:
        return qmodel.connect(f"{self.servers[which].url}?deadline=20{more}")

    def follow(self, replica: int) -> None:
        master = 1 - replica
        self.raw[replica].execute_command("REPLICAOF", "127.0.0.1", self.ports[master])
        self.catch_up(replica)

    def catch_up(self, replica: int) -> None:
        until(lambda: self.offsets(replica)[0] == self.offsets(replica)[1] is not None)

    def offsets(self, replica: int) -> tuple[Any, Any]:
        info: Any = self.raw[replica].info("replication")
        up = info.get("master_link_status") == "up"
        master: Any = self.raw[1 - replica].info("replication")
        return (info["slave_repl_offset"] if up else -1), master["master_repl_offset"]

    def promote(self, which: int) -> None:
        """The link is cut: whatever the other writes from now on is lost."""
        self.raw[which].execute_command("REPLICAOF", "NO", "ONE")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "the servers do not get there"
        time.sleep(0.01)


@pytest.fixture
def pair(private: Starter) -> Iterator[Pair]:
    with contextlib.ExitStack() as stack:
        ports = [free_port(), free_port()]
        servers = [stack.enter_context(private(*REPLICATES, "--port", str(port))) for port in ports]
        yield Pair(servers, ports)


def claim(client: qmodel.Client, worker: str) -> Any:
    (job,) = client.execute(ops.Pop("q", worker))
    return job


def ids(events: Iterator[Event]) -> dict[tuple[int, int], Event]:
    """Events by what identifies them."""
    return {(event.epoch, event.seq): event for event in events}


def test_a_lease_of_a_lost_tail_is_worth_nothing_after_a_failover(pair: Pair) -> None:
    old = pair.connect(0)
    old.queues["q"].put("Pay", {"n": 1}, jid="pay")
    kept = claim(old, "w0")
    old.queues["q"].put("Pay", {"n": 2}, jid="other")
    pair.follow(1)
    pair.promote(1)
    lost = claim(old, "w1")

    new = pair.connect(1)
    again = claim(new, "w2")
    assert (again.jid, lost.jid) == ("other", "other")
    assert again.token != lost.token
    assert again.token // TOKEN_EPOCH > kept.token // TOKEN_EPOCH
    with pytest.raises(LockLost):
        new.execute(ops.Complete("other", lost.token, result='"by w1"'))
    assert new.execute(ops.Complete("other", again.token, result='"by w2"')) == "complete"
    assert new.jobs["other"].result == "by w2"
    assert new.execute(ops.Complete("pay", kept.token)) == "complete"  # a lease that both servers know goes on
    both = ids(old.events()).keys() & ids(new.events()).keys()
    assert all(ids(old.events())[one] == ids(new.events())[one] for one in both)


def test_a_request_that_was_executed_on_the_lost_tail_is_executed_anew(pair: Pair) -> None:
    old = pair.connect(0)
    old.queues["q"].put("Pay", {}, jid="first")
    pair.follow(1)
    pair.promote(1)
    put = ops.Put("q", "second", "Pay", "", request="r")
    assert old.execute(put) == "second"
    new = pair.connect(1)
    assert new.jobs.get("second") is None
    assert new.execute(put) == new.execute(put) == "second"
    assert new.queues["q"].length() == 2


def test_a_failback_by_partial_resync_begins_an_epoch_again(pair: Pair) -> None:
    """The first master keeps its Lua state while it is a replica."""
    one, two = pair.connect(0), pair.connect(1)
    one.queues["q"].put("Pay", {}, jid="a")
    pair.follow(1)
    full = pair.raw[1].info("stats")["sync_full"]
    pair.promote(1)
    two.queues["q"].put("Pay", {}, jid="b")
    pair.follow(0)
    epoch = one.position().epoch
    pair.promote(0)
    two.queues["q"].put("Pay", {}, jid="lost")
    one.queues["q"].put("Pay", {}, jid="c")
    assert pair.raw[1].info("stats")["sync_full"] == full  # it was a partial one
    assert one.position().epoch > epoch
    ours, theirs = ids(one.events()), ids(two.events())
    assert all(ours[key] == theirs[key] for key in ours.keys() & theirs.keys())
    assert "lost" in str(theirs) and "lost" not in str(ours)


def test_a_reader_notices_the_fork_and_takes_back_what_was_lost(pair: Pair) -> None:
    old = pair.connect(0)
    old.queues["q"].put("Pay", {}, jid="a")
    pair.follow(1)
    pair.promote(1)
    common = old.newest()
    for n in range(3):
        old.queues["q"].put("Pay", {}, jid=f"lost{n}")
    read = list(old.events())
    new = pair.connect(1)
    assert list(new.events(read[-1].seq, epoch=read[-1].epoch)) == []  # as a replica that lags
    new.queues["q"].put("Pay", {}, jid="b")
    with pytest.raises(Forked) as caught:
        list(new.events(read[-1].seq, epoch=read[-1].epoch))
    assert (int(caught.value.after), int(caught.value.common)) == (read[-1].seq, common)
    assert caught.value.epoch in str(caught.value) and caught.value.current in str(caught.value)

    forks: list[Forked] = []
    last = read[-1]
    seen = list(new.follow(last.seq, epoch=last.epoch, timeout=0.05, on_fork=forks.append))
    assert [int(fork.common) for fork in forks] == [common]
    assert [event.event for event in seen] == ["epoch_begun", "put"]
    for n in range(9):
        new.queues["q"].put("Pay", {}, jid=f"more{n}")
    with pytest.raises(Forked):  # also when the new history has passed the cursor
        list(new.events(last.seq, epoch=last.epoch))


def test_flushall_begins_an_epoch(private: Starter) -> None:
    with private() as server:
        client = qmodel.connect(server.url)
        client.queues["q"].put("Pay", {}, jid="a")
        token, position = claim(client, "w").token, client.position()
        server.client().flushall()
        client.queues["q"].put("Pay", {}, jid="a")
        assert claim(client, "w").token != token
        assert client.position().epoch > position.epoch
        with pytest.raises(Forked):
            list(client.events(position.seq, epoch=position.epoch))


def test_an_older_dump_restored_into_a_running_server_begins_an_epoch(private: Starter) -> None:
    with private() as server:
        client, raw = qmodel.connect(server.url), server.client()
        client.queues["q"].put("Pay", {}, jid="a")
        dump = {key: raw.dump(key) for key in raw.scan_iter()}
        lost = claim(client, "w1").token
        raw.flushall()
        for key, value in dump.items():
            raw.restore(key, 0, value)
        assert claim(client, "w2").token != lost


def test_a_restart_without_persistence_begins_an_epoch(private: Starter) -> None:
    with private() as server:
        client = qmodel.connect(server.url)
        client.queues["q"].put("Pay", {}, jid="a")
        lost = claim(client, "w1").token
        server.kill()
        server.start()
        client.queues["q"].put("Pay", {}, jid="a")
        assert claim(client, "w2").token != lost


def test_a_script_begins_an_epoch_for_each_process_of_the_server(pair: Pair) -> None:
    old = pair.connect(0, "&functions=no")
    old.queues["q"].put("Pay", {}, jid="a")
    pair.follow(1)
    pair.promote(1)
    lost = claim(old, "w1").token
    new = pair.connect(1, "&functions=no")
    assert claim(new, "w2").token != lost
    epoch = new.position().epoch
    new.queues["q"].put("Pay", {}, jid="b")
    assert new.position().epoch == epoch


def test_reads_on_a_replica_do_not_make_its_lua_state_the_writer(pair: Pair) -> None:
    old = pair.connect(0)
    old.queues["q"].put("Pay", {}, jid="a")
    pair.follow(1)
    for _ in range(3):
        pair.raw[1].execute_command("FCALL_RO", "qmodel_v1_newest", 1, "ql:", "", "")
    pair.promote(1)
    lost = claim(old, "w1").token
    assert claim(pair.connect(1), "w2").token != lost


def test_one_server_stays_in_its_epoch(private: Starter) -> None:
    with private() as server:
        client = qmodel.connect(server.url)
        for n in range(20):
            client.queues["q"].put("Pay", {}, jid=f"a{n}")
            claim(client, "w")
        assert {event.epoch for event in client.events()} == {client.position().epoch}
        assert [event.event for event in client.events()].count("epoch_begun") == 1


def test_the_journal_of_two_epochs_can_be_executed_again(private: Starter) -> None:
    from qmodel.pipeline.audit.replay import Audit

    with private() as server:
        client, raw = qmodel.connect(server.url), server.client()
        client.config["journal"] = 1
        client.queues["q"].put("Pay", {}, jid="a")
        dump = {key: raw.dump(key) for key in raw.scan_iter()}
        claim(client, "w1")
        raw.flushall()
        for key, value in dump.items():
            raw.restore(key, 0, value)
        token = claim(client, "w2").token
        client.execute(ops.Complete("a", token))
        entries = list(client.journal())
        assert len({entry.epoch for entry in entries}) == 2
        assert list(Audit().follow(entries)) == []


def test_a_client_leaves_a_demoted_master_for_the_server_that_its_name_leads_to_now(pair: Pair) -> None:
    pair.follow(1)
    with Network() as network, contextlib.closing(Line(network, to=pair.ports[0])) as line:
        client = qmodel.connect(f"redis://127.0.0.1:{line.port}?deadline=20")
        client.queues["q"].put("add", jid="before")
        switch(pair, line, 1)
        client.queues["q"].put("add", jid="after")
        client.close()


async def test_an_async_client_leaves_a_demoted_master_too(pair: Pair) -> None:
    pair.follow(1)
    with Network() as network, contextlib.closing(Line(network, to=pair.ports[0])) as line:
        async with qmodel.AsyncClient(f"redis://127.0.0.1:{line.port}?deadline=20") as client:
            await client.queues["q"].put("add", jid="before")
            switch(pair, line, 1)
            await client.queues["q"].put("add", jid="after")


def switch(pair: Pair, line: Line, to: int) -> None:
    """Promote the replica, and demote the master; connections that are open stay with it."""
    pair.catch_up(to)
    pair.promote(to)
    pair.raw[1 - to].execute_command("REPLICAOF", "127.0.0.1", pair.ports[to])
    line.to = pair.ports[to]

"""Connections: allowed and refused commands, and that no connection can harm another."""

from __future__ import annotations

import asyncio
import contextlib
import random
import select
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

import qmodel
from qmodel.serve.commands import COMMANDS
from qmodel.serve.dispatch import TABLES
from tests.serve.support import PATIENCE, Serving, eventually, run_to_its_end, serving
from tests.servers import Server

PREFIX = "ql:"


@pytest.fixture(scope="module")
def one() -> Iterator[Serving]:
    with serving("--connections", "60", "--databases", "4") as server:
        yield server


@pytest.fixture
def served(one: Serving) -> Serving:
    with one.client() as client:
        client.flushall()
    return one


@pytest.fixture(params=[2, 3])
def client(request: pytest.FixtureRequest, served: Serving) -> Iterator[Any]:
    with served.client(protocol=request.param, decode_responses=True) as made:
        yield made


def put(client: Any, jid: str, queue: str = "q") -> Any:
    return client.fcall("qmodel_v1_put", 1, PREFIX, "", "", queue, jid, "K", "{}")


# ---- what is asked


def test_it_says_what_it_is(client: Any) -> None:
    info = client.info()
    assert (info["server_name"], info["role"], info["aof_enabled"], info["loading"]) == ("qmodel", "master", 0, 0)
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert client.command_count() == len(COMMANDS) == len(client.command()) > len(TABLES)
    assert client.ping() and client.echo("é") == "é"


def test_a_connection_tells_its_name_and_its_library(client: Any) -> None:
    client.client_setname("me")
    assert client.client_getname() == "me"
    assert any(found["name"] == "me" for found in client.client_list())
    assert client.client_id() > 0


def test_databases_and_prefixes_are_namespaces(served: Serving) -> None:
    with served.client() as zero, served.client(db=3) as three:
        put(zero, "j")
        assert [zero.dbsize(), three.dbsize()] == [1, 0]
        put(three, "j")
        three.fcall("qmodel_v1_put", 1, "other:", "", "", "q", "j", "K", "{}")
        assert [zero.dbsize(), three.dbsize()] == [1, 2]
        three.flushdb()
        assert [zero.dbsize(), three.dbsize()] == [1, 0]
        with pytest.raises(redis.ResponseError, match="out of range"):
            zero.select(4)


def test_a_transaction_is_one_step(client: Any) -> None:
    with client.pipeline(transaction=True) as asking:
        put(asking, "a")
        asking.blpop(["ql:q:q-wake"], 5)  # BLPOP does not wait in EXEC
        asking.fcall("qmodel_v1_length", 1, PREFIX, "", "", "q")
        assert asking.execute() == ["a", None, 1]


def test_a_transaction_with_a_wrong_command_is_not_executed(served: Serving) -> None:
    with served.line() as line:
        line.sendall(
            b"MULTI\r\nFCALL qmodel_v1_put 1 ql: '' '' q a K {}\r\nSET a 1\r\nEXEC\r\nEXEC\r\nDISCARD\r\nDBSIZE\r\n"
        )
        said = read(line, 7)
    assert said[:2] == [b"+OK", b"+QUEUED"] and said[3].startswith(b"-EXECABORT")
    assert [word.split()[1:3] for word in said[4:6]] == [[b"EXEC", b"without"], [b"DISCARD", b"without"]]
    assert said[6] == b":0"


def test_what_is_not_there_is_answered_with_what_to_use(client: Any) -> None:
    for words in (
        ("GET", "a"),
        ("KEYS", "*"),
        ("FUNCTION", "DUMP"),
        ("CLIENT", "KILL", "x"),
        ("SCRIPT", "DEBUG", "YES"),
    ):
        with pytest.raises(redis.ResponseError, match="unknown"):
            client.execute_command(*words)
    with pytest.raises(redis.ResponseError, match="takes one key, the prefix"):
        client.fcall("qmodel_v1_length", 2, "a", "b", "", "", "q")
    with pytest.raises(redis.ResponseError, match=r"\*_ro command"):
        client.fcall_ro("qmodel_v1_put", 1, PREFIX, "", "", "q", "a", "K", "{}")
    assert client.fcall_ro("qmodel_v1_length", 1, PREFIX, "", "", "q") == 0


def test_the_library_can_be_lost_and_loaded(served: Serving) -> None:
    with served.client() as client, qmodel.Client(served.url) as ours:
        assert client.function_list()
        client.function_flush()
        assert client.function_list() == []
        with pytest.raises(redis.ResponseError, match="Function not found"):
            put(client, "j")
        with pytest.raises(redis.ResponseError, match="no Lua runs here"):
            client.function_load("#!lua name=mine\nredis.register_function('f', function() end)")
        ours.queues["q"].put("K")  # our client loads the library
        assert client.function_list()


# ---- channels, waiting, events


def test_messages_reach_who_listens(client: Any, served: Serving) -> None:
    listening = client.pubsub()
    listening.subscribe("a", "é")
    listening.psubscribe("b[12]*")
    assert [listening.get_message(timeout=60)["data"] for _ in range(3)] == [1, 2, 3]
    with served.client() as other:
        assert [other.publish(name, "m") for name in ("a", "b3", "b2x", "c")] == [1, 0, 1, 0]
    got = [listening.get_message(timeout=60) for _ in range(2)]
    assert [(one["type"], one["channel"], one["data"]) for one in got] == [
        ("message", "a", "m"),
        ("pmessage", "b2x", "m"),
    ]
    listening.unsubscribe()
    listening.punsubscribe()
    listening.close()


def test_who_listens_in_version_2_may_ask_for_nothing_else(served: Serving) -> None:
    with served.line() as line:
        line.sendall(b"SUBSCRIBE a\r\n")
        read(line, 6)
        line.sendall(b"DBSIZE\r\nRESET\r\nDBSIZE\r\n")
        said = read(line, 3)
    assert said[0].startswith(b"-ERR Can't execute") and said[1:] == [b"+RESET", b":0"]


def test_each_put_wakes_one_who_waits_the_longest_waiting_first(served: Serving) -> None:
    lines = [served.line() for _ in range(3)]
    try:
        for number, line in enumerate(lines):
            pop = b"FCALL qmodel_v1_pop 1 ql: '' '' q w%d wait 1\r\n" % number
            line.sendall(pop + b"BLPOP ql:q:other-wake ql:q:q-wake 60\r\nPING\r\n")
            read(line, 2)  # the reply to the pop is sent when BLPOP waits: they were received together
        with served.client() as client:
            for number in range(2):
                put(client, f"j{number}")
                assert read(lines[number], 6)[2] == b"ql:q:q-wake"  # and the PING behind it
        lines[2].setblocking(False)
        with pytest.raises(BlockingIOError):
            lines[2].recv(1)
    finally:
        for line in lines:
            line.close()


def test_who_waits_goes_on_when_the_database_is_emptied(served: Serving) -> None:
    with served.line() as line, served.client() as client:
        line.sendall(b"PING\r\nBLPOP ql:q:q-wake 60\r\n")
        read(line, 1)  # the reply to PING is sent when BLPOP waits: they were received together
        client.fcall("qmodel_v1_pop", 1, PREFIX, "", "", "q", "w", "wait", "1")
        client.flushall()
        client.fcall("qmodel_v1_pop", 1, PREFIX, "", "", "q", "w", "wait", "1")
        put(client, "j")
        assert read(line, 5)[2] == b"ql:q:q-wake"


def test_a_wait_ends_when_its_time_is_up(client: Any) -> None:
    assert client.blpop(["ql:q:q-wake"], 0.05) is None
    with pytest.raises(redis.ResponseError, match="timeout"):
        client.execute_command("BLPOP", "ql:q:q-wake", "-1")
    with pytest.raises(redis.ResponseError, match="wake-ups"):
        client.blpop(["mylist"], 1)


def test_who_hangs_up_while_waiting_takes_no_wake_up(served: Serving) -> None:
    with served.line() as gone:
        pop = b"FCALL qmodel_v1_pop 1 ql: '' '' q w wait 1\r\n"
        gone.sendall(b"CLIENT SETNAME gone\r\n" + pop + b"BLPOP ql:q:q-wake 0\r\n" * 2)
        read(gone, 3)
    with served.client() as client:
        eventually(lambda: all(one["name"] != "gone" for one in client.client_list()))
        put(client, "j")
        assert client.blpop(["ql:q:q-wake"], 5) == (b"ql:q:q-wake", b"1")


def test_events_are_read_as_a_stream(client: Any, served: Serving) -> None:
    for jid in "abc":
        put(client, jid)
    ids = [entry[0] for entry in client.xrange("ql:events")]
    epoch = ids[0].partition("-")[2]
    assert ids == [f"{seq}-{epoch}" for seq in (1, 2, 3, 4)]  # an epoch begins first
    assert [entry[0] for entry in client.xrange("ql:events", f"({ids[1]}", "3")] == [ids[2]]
    assert [entry[0] for entry in client.xrange("ql:events", "2", f"({ids[2]}")] == [ids[1]]
    (read_,) = (
        client.xread({"ql:events": ids[1]}, count=1).values()
        if client.get_connection_kwargs().get("protocol") == 3
        else [stream[1] for stream in client.xread({"ql:events": ids[1]}, count=1)]
    )
    assert ids[2] in str(read_) and ids[3] not in str(read_)

    threading.Timer(0.2, lambda: put_at(served, "late")).start()
    assert "late" in str(client.xread({"ql:events": "$"}, block=10_000))
    assert not client.xread({"ql:events": "$"}, block=20)


def put_at(server: Serving, jid: str) -> None:
    with server.client() as client:
        put(client, jid)


def test_many_tasks_wait_and_are_woken(served: Serving) -> None:
    async def work(client: qmodel.AsyncClient, done: list[str], all_done: asyncio.Event) -> None:
        while (job := await client.queues["q"].pop(timeout=10 * PATIENCE)) is not None:
            await job.complete()
            done.append(job.jid)
            if len(done) == 100:
                all_done.set()

    async def main() -> list[str]:
        done: list[str] = []
        all_done = asyncio.Event()
        async with qmodel.AsyncClient(served.url) as client:
            workers = [asyncio.create_task(work(client, done, all_done)) for _ in range(20)]
            for number in range(100):
                await client.queues["q"].put("K", jid=f"j{number}")
            await asyncio.wait_for(all_done.wait(), PATIENCE)
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        return done

    assert sorted(asyncio.run(main())) == sorted(f"j{number}" for number in range(100))


# ---- in front of another backend


@pytest.mark.parametrize("url", ["embedded://", "memory://passed"])
def test_another_backend_answers_through_it(url: str) -> None:
    with serving("--url", url) as server, qmodel.Client(server.url) as client:
        queue = client.queues["q"]
        queue.put("K", {"a": 1}, jid="j", tags=["t"])
        threading.Timer(0.3, lambda: put_at(server, "late")).start()
        job = queue.pop()
        assert job is not None and (job.data, job.tags) == ({"a": 1}, ("t",))
        job.complete()
        late = queue.pop(timeout=60)
        assert late is not None and late.jid == "late"
        with server.client() as raw, pytest.raises(redis.ResponseError, match="one namespace"):
            raw.fcall("qmodel_v1_length", 1, "other:", "", "", "q")


def test_a_server_stops_though_many_wait_behind_it() -> None:
    with serving("--url", "embedded://") as server:
        lines = [server.line() for _ in range(12)]
        for line in lines:
            line.sendall(b"FCALL qmodel_v1_pop 1 ql: '' '' q w wait 1\r\n")
            read(line, 2)
            line.sendall(b"BLPOP ql:q:q-wake 0\r\n")
        with server.client() as client:
            for line in lines:
                put(client, f"j{lines.index(line)}")
            eventually(lambda: all(has_word(line) for line in lines))
        for line in lines:
            line.sendall(b"BLPOP ql:q:q-wake 0\r\n")
        server.stop()
        for line in lines:
            line.close()


def has_word(line: socket.socket) -> bool:
    """Whether the server has sent something on a connection."""
    return bool(select.select([line], [], [], 0)[0])


def test_a_real_server_answers_through_it(server: Server) -> None:
    url = f"{server.url}?prefix=passed:"
    with serving("--url", url) as served, qmodel.Client(f"{served.url}?prefix=passed:") as client:
        client.queues["q"].put("K", [1], jid="j", depends=[])
        with qmodel.Client(url) as direct:
            assert direct.jobs["j"].data == [1]
            with client.queues["q"].pop() as job:
                assert job.jid == "j"
            assert direct.jobs["j"].state == "complete"


# ---- passwords, limits, hostile clients


def test_a_password_is_asked_for() -> None:
    with serving_with_password("secret") as server:
        for password in ("wrong", None):
            with pytest.raises(redis.RedisError), server.client(password=password) as client:
                client.dbsize()
        with server.client(password="secret", protocol=3) as client:
            assert client.dbsize() == 0
        with server.line() as line:
            line.sendall(b"*1\r\n$20000\r\n")
            assert line.recv(100) == b"-ERR Protocol error: invalid bulk length\r\n"


class serving_with_password:
    """A server that requires a password."""

    def __init__(self, password: str) -> None:
        self._inner = serving("--password", password)

    def __enter__(self) -> Serving:
        return self._inner.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._inner.__exit__(*exc)


def test_too_many_connections_are_turned_away_and_the_others_go_on(served: Serving) -> None:
    lines = [served.line() for _ in range(70)]
    try:
        said = []
        for line in lines:
            with contextlib.suppress(BrokenPipeError):
                line.sendall(b"PING\r\n")
            said.append(line.recv(100))
        assert said.count(b"+PONG\r\n") >= 55
        assert set(said) <= {b"+PONG\r\n", b"-ERR max number of clients reached\r\n"} and len(set(said)) == 2
    finally:
        for line in lines:
            line.close()
    eventually(lambda: is_up(served))


def is_up(server: Serving) -> bool:
    try:
        with server.client() as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@pytest.mark.parametrize("seed", range(40))
def test_noise_ends_its_own_connection_at_most(served: Serving, seed: int) -> None:
    chance = random.Random(seed)
    with served.line() as line:
        for _ in range(chance.randint(1, 30)):
            try:
                line.sendall(chance.choice(PIECES))
            except OSError:
                break
    assert is_up(served)


PIECES = (
    b"*3\r\n$5\r\nFCALL\r\n", b"$1\r\n1\r\n", b"*1000000\r\n", b"$4194304\r\n", b"*-5\r\n", b"\r\n", b"PING\r\n",
    b"MULTI\r\n", b"EXEC\r\n", b"BLPOP ql:q:q-wake 0\r\n", b"\x00\xff" * 50, b"*1\r\n" * 200, b"HELLO 3\r\n",
    b"SUBSCRIBE a\r\n", b'"', b"FCALL qmodel_v1_put 1 ql: '' '' q j K '{}' tags\r\n", b"COMMAND DOCS\r\n",
    b"XREAD BLOCK 0 STREAMS ql:events $\r\n", b"EVAL x 0\r\n", b"FUNCTION LOAD x\r\n", b"DEBUG QMODEL FAULT x\r\n",
)  # fmt: skip


def test_who_does_not_read_is_not_read_from(served: Serving) -> None:
    """A client requests a gigabyte and reads nothing: it cannot fill the server's memory or block other clients."""
    with served.client() as client:
        client.fcall("qmodel_v1_put", 1, PREFIX, "", "", "q", "big", "K", "x" * 1_000_000)
        with served.line() as line:
            line.settimeout(1)
            with pytest.raises(TimeoutError):
                for _ in range(200):
                    line.sendall(b"FCALL qmodel_v1_get 1 ql: '' '' big\r\n" * 100)
            assert is_up(served)
            assert resident_mb(served) < 400
    eventually(lambda: is_up(served))


def test_who_listens_and_does_not_read_is_cut_off(served: Serving) -> None:
    with served.line() as line, served.client() as client:
        line.sendall(b"SUBSCRIBE a\r\n")
        read(line, 6)
        eventually(lambda: [client.publish("a", "x" * 1_000_000) for _ in range(10)][-1] == 0)
        assert resident_mb(served) < 400


def resident_mb(server: Serving) -> float:
    assert server.process is not None
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def test_a_clean_stop_answers_what_was_asked_and_frees_its_place() -> None:
    with serving() as server:
        with server.line() as line:
            line.sendall(b"PING\r\nBLPOP ql:q:q-wake 0\r\n")
            assert line.recv(100) == b"+PONG\r\n"
            server.stop()
            assert line.recv(100) == b""
        server.start()
        assert is_up(server)


def test_a_place_that_is_taken_is_said() -> None:
    with serving() as server:
        code, said = run_to_its_end_at(server.socket)
        assert code == 69 and "The server cannot listen on" in said and "The URL was" not in said
        assert is_up(server)


def run_to_its_end_at(path: str) -> tuple[int, str]:
    return run_to_its_end("--socket", path)


def read(line: socket.socket, lines: int) -> list[bytes]:
    """Read so many lines from the server."""
    said = b""
    while said.count(b"\r\n") < lines:
        more = line.recv(1 << 16)
        assert more, said
        said += more
    assert said.count(b"\r\n") == lines, said
    return said.split(b"\r\n")[:-1]

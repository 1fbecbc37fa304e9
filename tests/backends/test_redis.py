"""`redis://` and its kin: operations, requests, waiting, and the library, on a real server."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from qmodel.backends import bundle, open_async_backend, open_backend
from qmodel.backends.redis.backend import RedisBackend
from qmodel.backends.redis.connect import connect, connect_async
from qmodel.backends.redis.dump import dump_command, dump_keys, dump_of
from qmodel.conformance.histories.wire_calls import NOT_UTF8
from qmodel.contract.operations import (
    Complete,
    CompleteAndPop,
    Get,
    Length,
    Log,
    Operation,
    Pause,
    Pop,
    Put,
    PutMany,
    Queues,
    Untrack,
)
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError
from tests.servers import Server

pytestmark = pytest.mark.server

HISTORY: tuple[Operation, ...] = (
    Put("q", "a", "Klass", "é"),
    Put("q", "b", "Klass", "{}", tags=("t", "u"), depends=("a",)),
    Pop("q", "worker", request="r1"),
    Complete("a", 3, result="done"),
    Complete("a", 9),
    Get("b"),
    Get(7),  # type: ignore[arg-type]
    Pause(("p",)),
    Pop("q", "worker", wait=True, request="r2"),
    Pop("q", "worker", wait=True, request="r3"),
    PutMany((Put("q", "c", "Klass", "x" * 5000), Put("q", "d", "Klass", ""))),
    Queues(),
)


class Blocking:
    """An asynchronous backend that is awaited at once: so one test serves both."""

    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner()
        self.backend = connect_async(url)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.backend, name)
        if not asyncio.iscoroutinefunction(found):
            return found
        return lambda *args, **options: self.runner.run(found(*args, **options))

    def close(self) -> None:
        self.runner.run(self.backend.close())
        self.runner.close()


@pytest.fixture
def url(server: Server) -> str:
    """The URL of an empty server without the library."""
    with server.client() as client:
        client.flushall()
        client.function_flush()
        client.script_flush()
    return server.url


@pytest.fixture(params=["sync", "async"])
def backend(request: pytest.FixtureRequest, url: str) -> Iterator[Any]:
    made: Any = connect(url) if request.param == "sync" else Blocking(url)
    yield made
    made.close()


def replies(backend: Any) -> list[Any]:
    return [backend.execute(op, 1_700_000_000_000 + at) for at, op in enumerate(HISTORY)]


# ---- executing


def test_an_operation_gives_its_reply_or_its_refusal(backend: Any) -> None:
    assert backend.execute(Put("q", "a", "Klass", "{}")) == "a"
    (job,) = backend.execute(Pop("q", "w"))
    assert backend.execute(Complete("a", 999)).code == "LOCK_LOST"
    assert backend.execute(Complete("a", job.token)) == "complete"


def test_replies_are_those_of_the_library_in_this_process(backend: Any) -> None:
    assert replies(backend) == replies(open_backend("embedded://"))


def test_replies_are_those_of_the_model(backend: Any) -> None:
    assert replies(backend) == replies(open_backend("memory://"))


def test_a_name_that_is_not_utf8_is_refused(backend: Any, server: Server) -> None:
    assert backend.execute(Length("é\u20ac\U0001f600")) == 0
    with server.client() as client:
        refused = [
            client.fcall("qmodel_v1_length", 1, backend.options.prefix, "", "", name.encode("utf-8", "surrogateescape"))
            for name in ("a\n", *NOT_UTF8)
        ]
    assert refused[0][0] in (b"BAD_ARGUMENT", "BAD_ARGUMENT")
    assert refused == refused[:1] * len(refused)


def test_the_script_replies_what_the_functions_do(url: str) -> None:
    script = connect(url + "?functions=no")
    assert replies(script) == replies(open_backend("embedded://"))
    assert bundle.LIBRARY not in str(script._talk(_asking("FUNCTION", "LIST")))


def test_either_protocol_will_do(url: str) -> None:
    backend = connect(url + "?protocol=3")
    assert replies(backend) == replies(open_backend("embedded://"))
    assert [warned.code for warned in backend.warnings] == ["NO_PERSISTENCE"]
    asynchronous = Blocking(url + "?protocol=3&prefix=other:")
    assert replies(asynchronous) == replies(open_backend("embedded://"))
    asynchronous.close()


def _asking(*command: str) -> Any:
    return (yield command)


def test_what_has_no_form_on_the_wire_is_refused_as_by_the_model(backend: Any) -> None:
    model = open_backend("memory://")
    for op in (Get(7), Put("q", "a", "K", "\ud800"), Length(None), Pop("q", "w", count="1")):  # type: ignore[arg-type]
        assert backend.execute(op) == model.execute(op)
    moment: Any = "noon"
    assert backend.execute(Length("q"), moment) == Refusal("BAD_ARGUMENT", ("length", "now"))


def test_many_are_executed_in_order_each_by_itself(backend: Any) -> None:
    ops = [Put("q", f"j{number}", "Klass", "") for number in range(1200)]
    ops[7] = Put("q", 7, "Klass", "")  # type: ignore[arg-type]
    ops[8] = Put("q", "not an id", "Klass", "")
    got = backend.execute_many([*ops, Length("q")])
    assert got[7] == got[8] == Refusal("BAD_ARGUMENT", ("put", "jid"))
    assert got[:7] + got[9:] == [*(op.jid for op in ops[:7] + ops[9:]), 1198]
    assert backend.execute_many([]) == []


def test_what_takes_a_request_id_gets_a_fresh_one(url: str, server: Server) -> None:
    with server.client() as client:
        backend, given = connect(url), connect(url + "?requests=given")
        given.execute(Untrack("a"))
        assert client.zcard("ql:requests-order") == 0
        backend.execute_many([Untrack("a"), Untrack("a")])
        backend.execute(Untrack("a", request="mine"))
        assert client.zcard("ql:requests-order") == 3
        backend.execute(Put("q", "a", "K", ""))
        before = dump_keys(client, "ql:")
        backend.execute(Log("a", "once", request="one"))
        after = dump_keys(client, "ql:")
        backend.execute(Log("a", "once", request="one"))
        assert before != after == dump_keys(client, "ql:")


def test_two_prefixes_do_not_see_each_other(url: str, server: Server) -> None:
    one, two = connect(url), connect(url + "?prefix={shop}:ql:")
    one.execute(Put("q", "a", "K", "1"))
    two.execute(Put("q", "a", "K", "2"))
    assert one.execute(Get("a")).data == "1"
    assert two.execute(Get("a")).data == "2"
    two.execute(Pop("q", "w"))
    assert one.execute(Get("a")).state == "waiting"
    with server.client() as client:
        assert all(key.startswith((b"ql:", b"{shop}:ql:")) for key in client.scan_iter())


def test_any_number_of_threads_may_use_one(url: str) -> None:
    backend = connect(url)
    seen: list[str] = []

    def work(name: str) -> None:
        for number in range(100):
            backend.execute(Put("q", f"{name}-{number}", "K", name))
            (job,) = backend.execute(Pop("q", name))
            seen.append(job.jid)
            assert backend.execute(Complete(job.jid, job.token)) == "complete"

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == len(set(seen)) == 800


def test_any_number_of_tasks_may_use_one(url: str) -> None:
    async def main() -> list[str]:
        backend = open_async_backend(url + "?max_connections=4")
        jids = [f"j{number}" for number in range(300)]
        put = await asyncio.gather(*(backend.execute(Put("q", jid, "K", "")) for jid in jids))
        assert put == jids
        popped = await asyncio.gather(*(backend.execute(Pop("q", "w")) for _ in jids))
        await backend.close()
        return [job.jid for jobs in popped for job in jobs]

    assert len(set(asyncio.run(main()))) == 300


def test_a_cancelled_call_leaves_the_others_their_replies(url: str) -> None:
    async def main() -> None:
        backend = open_async_backend(url)
        await backend.execute(Put("q", "a", "K", ""))
        for _ in range(50):
            task = asyncio.create_task(backend.execute(Get("a")))
            await asyncio.sleep(0)
            task.cancel()
            assert await backend.execute(Length("q")) == 1
        await backend.close()

    asyncio.run(main())


def test_one_event_loop_after_the_other_may_use_one(url: str) -> None:
    backend = connect_async(url)
    assert asyncio.run(backend.execute(Put("q", "a", "K", ""))) == "a"
    assert asyncio.run(backend.execute(Length("q"))) == 1


def test_a_fork_leaves_the_connections_to_the_parent(url: str) -> None:
    backend = connect(url)
    backend.execute(Put("q", "a", "K", ""))
    child = os.fork()
    if child == 0:
        good = all(backend.execute(Get("a")).jid == "a" for _ in range(200))
        os._exit(0 if good else 1)
    assert all(backend.execute(Length("q")) == 1 for _ in range(200))
    assert os.waitpid(child, 0)[1] == 0


def test_a_closed_backend_says_so(backend: Any) -> None:
    backend.execute(Length("q"))
    backend.close() if isinstance(backend, RedisBackend) else backend.runner.run(backend.backend.close())
    with pytest.raises(ConnectError, match="was closed"):
        backend.execute(Length("q"))
    assert backend.wait(["q"], 30) is False


# ---- waiting


def later(seconds: float, do: Any) -> threading.Thread:
    def run() -> None:
        time.sleep(seconds)
        do()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_who_waits_is_woken_by_a_put(backend: Any, url: str) -> None:
    assert backend.execute(Pop("q2", "w", wait=True)) == ()
    thread = later(0.2, lambda: connect(url).execute(Put("q2", "a", "K", "")))
    assert backend.wait(["q1", "q2", "q1"], 3600) is True
    thread.join()


def test_who_is_not_woken_sleeps_until_the_timeout(backend: Any) -> None:
    backend.execute(Pop("q", "w", wait=True))
    for timeout in (0.3, 0, -1):
        began = time.monotonic()
        assert backend.wait(["q"], timeout) is False
        assert time.monotonic() - began >= max(timeout, 0)
    assert backend.wait([], 0.1) is False
    assert backend.wait(["not\na queue"], 0.1) is False


def test_a_wait_may_be_longer_than_the_time_allowed_for_a_reply(url: str) -> None:
    backend = connect(url + "?socket_timeout=0.2")
    began = time.monotonic()
    assert backend.wait(["q"], 1) is False
    assert time.monotonic() - began >= 1


def test_closing_ends_who_waits(url: str) -> None:
    backend = connect(url)
    thread = later(0.2, backend.close)
    assert backend.wait(["q"], 3600) is False
    thread.join()


@pytest.mark.parametrize("pause", [0, 0.001, 0.2], ids=["at-once", "connecting", "asleep"])
def test_closing_ends_the_tasks_that_wait(pause: float, url: str) -> None:
    async def main() -> list[bool]:
        backend = open_async_backend(url)
        waiting = [asyncio.create_task(backend.wait(["q"], 3600)) for _ in range(3)]
        await asyncio.sleep(pause)
        await backend.close()
        return await asyncio.wait_for(asyncio.gather(*waiting), 60)

    assert asyncio.run(main()) == [False] * 3


# ---- the library


def test_many_clients_load_the_library_once(url: str, server: Server) -> None:
    with server.client() as client:
        client.config_resetstat()
        threads = [threading.Thread(target=connect, args=(url,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        loads = client.info("commandstats")["cmdstat_function|load"]
        assert loads["calls"] - loads["failed_calls"] == 1
        client.config_resetstat()
        for _ in range(20):
            connect(url)
        assert "cmdstat_function|load" not in client.info("commandstats")


def test_a_library_that_is_lost_is_loaded_again(backend: Any, server: Server) -> None:
    backend.execute(Put("q", "a", "K", ""))
    with server.client() as client:
        client.function_flush()
        assert backend.execute(Length("q")) == 1
        client.function_flush()
        assert backend.execute_many([Put("q", "b", "K", ""), Length("q")]) == ["b", 2]


def test_a_script_that_is_lost_is_loaded_again(url: str, server: Server) -> None:
    backend = connect(url + "?functions=no")
    with server.client() as client:
        client.script_flush()
        assert backend.execute(Put("q", "a", "K", "")) == "a"
        client.script_flush()
        assert backend.execute_many([Put("q", "b", "K", ""), Length("q")]) == ["b", 2]


def other_library(server: Server, revision: int) -> bytes:
    """Load a library that says to be of some revision, and give its digest."""
    text = bundle.library().replace(f"'{bundle.revision()}:{bundle.digest()}'", f"'{revision}:other'")
    with server.client() as client:
        client.function_load(text, replace=True)
    return there(server)


def there(server: Server) -> bytes:
    with server.client() as client:
        found: bytes = client.fcall(f"{bundle.LIBRARY}_digest", 0)
        return found


OURS = f"{bundle.revision()}:{bundle.digest()}".encode()


def test_an_older_library_is_replaced(url: str, server: Server) -> None:
    other_library(server, bundle.revision() - 1)
    assert [warned.code for warned in connect(url).warnings] == ["NO_PERSISTENCE"]
    assert there(server) == OURS


def test_another_library_of_the_same_revision_is_replaced(url: str, server: Server) -> None:
    other_library(server, bundle.revision())
    connect(url)
    assert there(server) == OURS


def test_a_newer_library_stays_and_serves(url: str, server: Server) -> None:
    newer = other_library(server, bundle.revision() + 1)
    backend = connect(url)
    assert "NEWER_LIBRARY" in [warned.code for warned in backend.warnings]
    assert backend.execute(Put("q", "a", "K", "")) == "a"
    assert there(server) == newer


def test_clients_of_two_versions_settle_on_the_newer(url: str, server: Server) -> None:
    newer = other_library(server, bundle.revision() + 1)
    for _ in range(3):
        connect(url)
        assert there(server) == newer


def test_a_deployer_may_go_back_to_an_older_library(url: str, server: Server) -> None:
    other_library(server, bundle.revision() + 1)
    connect(url + "?load=always")
    assert there(server) == OURS


def test_who_may_not_load_says_what_is_missing(url: str) -> None:
    with pytest.raises(ConnectError, match="does not have the library"):
        connect(url + "?load=never")
    connect(url)
    assert connect(url + "?load=never").execute(Length("q")) == 0


@pytest.mark.parametrize(
    "older, newer", [("0.1.0", "0.1.1"), ("0.9.9", "0.10.0"), ("0.99", "1.0"), ("1.0.0rc1", "1.0.1")]
)
def test_the_revision_grows_with_the_version(older: str, newer: str) -> None:
    assert bundle.revision(older) < bundle.revision(newer)


# ---- dumps


def test_both_dumps_are_what_the_keyspace_in_this_process_holds(url: str, server: Server) -> None:
    backend, embedded = connect(url + "?requests=given"), open_backend("embedded://")
    assert replies(backend) == replies(embedded)
    connect(url + "?prefix=other:").execute(Put("q", "a", "K", ""))
    expected = embedded.namespace.keyspace.dump()  # type: ignore[attr-defined]
    with server.client() as client:
        assert dump_of(client.execute_command(*dump_command("ql:"))) == expected
        assert dump_keys(client, "ql:") == expected


def test_a_dump_holds_values_of_every_type(server: Server, url: str) -> None:
    with server.client() as client:
        client.set("x:a*b", "s")
        client.hset("x:h", "f", "v")
        client.rpush("x:l", "1", "2", "1")
        client.sadd("x:s", "m", "n")
        client.zadd("x:z", {"b": 1.5, "a": 1.5, "c": float("-inf")})
        client.xadd("x:e", {"f": "v", "g": "w"}, id="5-1")
        client.xadd("x:e", {"f": "v"}, id="6-0")
        client.xdel("x:e", "6-0")
        client.set("y:a", "not this")
        expected = {
            b"x:a*b": ("string", b"s"),
            b"x:h": ("hash", {b"f": b"v"}),
            b"x:l": ("list", [b"1", b"2", b"1"]),
            b"x:s": ("set", frozenset((b"m", b"n"))),
            b"x:z": ("zset", [(b"c", float("-inf")), (b"a", 1.5), (b"b", 1.5)]),
            b"x:e": ("stream", ([(b"5-1", (b"f", b"v", b"g", b"w"))], b"6-0")),
        }
        assert dump_keys(client, "x:") == expected
        assert dump_of(client.execute_command(*dump_command("x:"))) == expected
        assert list(dump_keys(client, "x:a*")) == [b"x:a*b"]
        assert list(dump_of(client.execute_command(*dump_command("x:[a]")))) == []


def test_a_dump_of_too_many_keys_is_refused(server: Server, url: str) -> None:
    with server.client() as client:
        client.mset({f"x:{number}": "" for number in range(11)})
        with pytest.raises(ValueError, match="more than 10 keys"):
            dump_keys(client, "x:", most=10)
        with pytest.raises(Exception, match="TOOMANY"):
            client.execute_command(*dump_command("x:", most=10))
        assert len(dump_keys(client, "x:", most=11)) == 11


def test_complete_and_pop_may_be_sent_twice(backend: Any) -> None:
    backend.execute_many([Put("q", "a", "K", ""), Put("q", "b", "K", "")])
    (job,) = backend.execute(Pop("q", "w"))
    op = CompleteAndPop("a", job.token, "q", "w", request="once")
    assert backend.execute(op) == backend.execute(op)

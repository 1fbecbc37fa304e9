"""Operations that are sent together reach the server in one call, and their replies are those of single calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from qmodel.backends import open_async_backend as connect_async
from qmodel.backends.memory import MemoryBackend
from qmodel.backends.namespace import Namespace
from qmodel.backends.redis import common
from qmodel.backends.redis.backend import RedisBackend
from qmodel.backends.redis.connect import connect
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, CorruptError
from tests.servers import SERVE, Server, serving

pytestmark = pytest.mark.server

PUTS = [ops.Put("q", f"j{i:03}", "K", "{}", request=f"r{i}") for i in range(250)]
MIXED = [
    *PUTS[:9], ops.Put("q", "no blanks", "K", ""), ops.Put("q", "j900", "K", "", depends=("nobody",)), ops.Get("j001"),
    *PUTS[9:30], ops.Length("q"), ops.Cancel(("j001",)), ops.Length("q"), *PUTS[30:34], ops.Cancel(("j001",)),
    ops.Pop("q", "w", 5, request="pop"),
]  # fmt: skip


@pytest.fixture
def backend(server: Server) -> Any:
    """A backend on an empty server."""
    with server.client() as client:
        client.flushall()
    with_ = connect(server.url)
    yield with_
    with_.close()


def calls(backend: RedisBackend, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the replies to each round trip of several operations."""
    found: list[int] = []
    send = backend._send_many

    def sending(packed: bytes, count: int) -> list[Any]:
        raw = send(packed, count)
        found.append(count)
        return raw

    monkeypatch.setattr(backend, "_send_many", sending)
    return found


def kept(replies: list[Any]) -> list[Any]:
    """Replies without what the clock and the epoch decide."""
    return [
        tuple(job.jid for job in one) if isinstance(one, tuple) and not isinstance(one, Refusal) and one
        and hasattr(one[0], "jid") else getattr(one, "jid", one)
        for one in replies
    ]  # fmt: skip


def test_replies_come_in_order_whatever_goes_together(backend: RedisBackend) -> None:
    expected = MemoryBackend(Namespace(lambda: 0)).execute_many(MIXED)
    assert kept(backend.execute_many(MIXED)) == kept(expected)


def test_a_hundred_operations_are_one_command(backend: RedisBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(backend, monkeypatch)
    assert backend.execute_many(PUTS) == [op.jid for op in PUTS]
    assert found == [1, 1, 1]


def test_large_operations_do_not_go_together(backend: RedisBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(backend, monkeypatch)
    large = [ops.Put("q", f"l{i}", "K", "x" * 300_000, request=f"l{i}") for i in range(6)]
    assert backend.execute_many(large) == [op.jid for op in large]
    assert found == [6]


def test_what_one_call_has_left_is_sent_in_the_next(backend: RedisBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(backend, monkeypatch)
    tagged = [
        ops.Put("q", f"t{i}", "K", "", tags=tuple(f"t{j}" for j in range(200)), request=f"t{i}") for i in range(90)
    ]
    assert backend.execute_many(tagged) == [op.jid for op in tagged]
    assert len(found) > 2 and set(found) == {1}


def test_asynchronous_backends_do_the_same(server: Server, backend: RedisBackend) -> None:
    async def replies() -> list[Any]:
        asynchronous = connect_async(server.url)
        try:
            return await asynchronous.execute_many(MIXED)
        finally:
            await asynchronous.close()

    expected = MemoryBackend(Namespace(lambda: 0)).execute_many(MIXED)
    assert kept(asyncio.run(replies())) == kept(expected)


def test_a_full_server_still_finishes_jobs(server: Server, backend: RedisBackend) -> None:
    backend.execute_many(PUTS)
    held = backend.execute(ops.Pop("q", "w", 20, request="pop"))
    with server.client() as client:
        client.config_set("maxmemory", 1)
        try:
            done = backend.execute_many([ops.Complete(job.jid, job.token) for job in held])
            with pytest.raises(ConnectError, match="maxmemory"):
                backend.execute_many([ops.Put("q", f"x{i}", "K", "{}") for i in range(9)])
        finally:
            client.config_set("maxmemory", 0)
    assert done == ["complete"] * 20


def test_a_server_without_functions_takes_them_too(server: Server) -> None:
    backend = connect(f"{server.url}?functions=no&prefix=script:")
    assert backend.execute_many(PUTS[: common.SOME]) == [op.jid for op in PUTS[: common.SOME]]
    backend.close()


@pytest.mark.parametrize("options", [(), ("--url", "memory://")])
def test_qmodel_serve_takes_them(options: tuple[str, ...]) -> None:
    with serving(*options) as server:
        assert server.name == SERVE.name
        backend = connect(server.url)
        expected = MemoryBackend(Namespace(lambda: 0)).execute_many(MIXED)
        assert kept(backend.execute_many(MIXED)) == kept(expected)
        with server.client() as client:
            assert client.execute_command("FCALL", "qmodel_v1_calls", 1, "ql:", "length", "3", "", "", "q") == [
                b"BAD_ARGUMENT", b"calls", b"operations",
            ]  # fmt: skip
        backend.close()


def test_an_error_of_one_operation_does_not_stop_the_others(server: Server, backend: RedisBackend) -> None:
    with server.client() as client:
        client.set("ql:q:bad-work", "foreign")
    with pytest.raises(CorruptError) as raised:
        backend.execute_many([*PUTS[:3], ops.Put("bad", "bad", "K", "{}", request="bad"), *PUTS[3:6]])
    assert raised.value.key == "ql:q:bad-work"
    assert backend.execute(ops.Length("q")) == 6

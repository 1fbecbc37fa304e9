"""A round trip by hiredis itself gives what redis-py would, and by redis-py where that is not possible."""

from __future__ import annotations

import socket
import threading

import pytest
import redis
from redis import exceptions as raised

from qmodel.backends.redis import round_trip
from qmodel.backends.redis.backend import RedisBackend
from qmodel.backends.redis.connect import connect
from qmodel.backends.redis.url import options_of
from qmodel.contract.operations import Complete, Pop, Put
from tests.servers import Server

pytestmark = pytest.mark.server

WAYS = ["ours", "theirs"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Our way, or that of redis-py."""
    if request.param == "theirs":
        monkeypatch.setattr(round_trip, "_parser", None)
    elif round_trip._parser is None:
        pytest.skip("hiredis is not installed, or this redis-py is not known")
    return str(request.param)


def packed(*words: str) -> bytes:
    """A command as it goes over the line."""
    return f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%b\r\n" % (len(w), w.encode()) for w in words)


@pytest.fixture
def connection(server: Server) -> redis.Connection:
    """A connection to an empty server."""
    with server.client() as client:
        client.flushall()
        made: redis.Connection = client.connection_pool.make_connection()
        made.connect()
        return made


def test_replies_are_what_the_server_says(way: str, connection: redis.Connection) -> None:
    assert round_trip.exchange(connection, packed("SET", "k", "v" * 300_000)) in (b"OK", True)
    assert round_trip.exchange(connection, packed("GET", "k")) == b"v" * 300_000
    assert round_trip.exchange(connection, packed("MGET", "none", "k"))[0] is None
    assert round_trip.exchange(connection, packed("INCR", "n")) == 1
    connection.disconnect()
    assert round_trip.exchange(connection, packed("INCR", "n")) == 2  # it connects again


def test_an_error_reply_is_raised_and_leaves_the_connection_as_it_was(way: str, connection: redis.Connection) -> None:
    with pytest.raises(raised.ResponseError, match="wrong number of arguments"):
        round_trip.exchange(connection, packed("GET"))
    with pytest.raises(raised.NoScriptError):
        round_trip.exchange(connection, packed("EVALSHA", "0" * 40, "0"))
    assert round_trip.exchange(connection, packed("INCR", "n")) == 1


def test_a_line_that_ends_in_a_reply_is_an_error_of_the_connection(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = redis.Connection(port=listening.getsockname()[1], protocol=2)

        def answer() -> None:
            line, _ = listening.accept()
            with line:
                while not (said := line.recv(1000)).startswith(b"*1\r\n$4\r\nPING"):
                    line.sendall(b"+OK\r\n" * said.count(b"*"))
                line.sendall(b"$10\r\nhalf")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        made.connect()
        with pytest.raises((raised.ConnectionError, OSError)):
            round_trip.exchange(made, packed("PING"))
        thread.join(60)


def test_a_backend_works_either_way(way: str, server: Server) -> None:
    with server.client() as client:
        client.flushall()
    backend = connect(server.url)
    assert backend.execute(Put("q", "a", "K", "é" * 50_000)) == "a"
    (job,) = backend.execute(Pop("q", "w"))
    assert job.data == "é" * 50_000
    assert backend.execute(Complete("a", job.token + 1)).code == "LOCK_LOST"
    assert backend.execute(Complete("a", job.token)) == "complete"
    backend.close()


class _Shared(list[redis.Connection]):
    """Idle connections, of which another thread takes the last one between a look and a pop."""

    def __len__(self) -> int:
        found = super().__len__()
        self.clear()
        return found


def test_two_threads_may_forget_the_same_connections(server: Server) -> None:
    backend = RedisBackend(options_of(server.url))
    backend._line.idle = _Shared(backend._line.idle)
    backend._forget(backend._line)
    assert not backend._line.idle
    backend.close()

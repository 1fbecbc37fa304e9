"""Connecting: every reason not to, in one readable message with the next step."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from redis import exceptions as raised

from qmodel.backends import bundle
from qmodel.backends.redis import setup
from qmodel.backends.redis.backend import RedisBackend
from qmodel.backends.redis.common import Batch, settings
from qmodel.backends.redis.connect import connect, connect_async
from qmodel.backends.redis.setup import Dialect, ForeignLibrary, diagnose, is_hopeless
from qmodel.backends.redis.url import options_of
from qmodel.contract.operations import Get, Length, Put
from qmodel.errors import ConnectError
from qmodel.wire.codec import encode
from tests.backends.helpers import Private, Starter, started
from tests.backends.test_redis import replies
from tests.backends.test_reliability import KINDS, opened
from tests.clusters import free_port, wait_until
from tests.servers import server_commands

SERVER = pytest.mark.server


def refused(url: str) -> ConnectError:
    """How connecting is refused; the asynchronous backend says the same."""
    with pytest.raises(ConnectError) as sync:
        connect(url)
    with pytest.raises(ConnectError) as first:
        asyncio.run(connect_async(url).execute(Length("q")))
    assert sync.value.next_step == first.value.next_step
    return sync.value


def codes(backend: RedisBackend) -> list[str]:
    return [warned.code for warned in backend.warnings]


# ---- URLs


@pytest.mark.parametrize(
    "url, connection",
    [
        ("redis://", {}),
        ("redis://h", {"host": "h"}),
        ("valkey://u:p%40@h:7000/3", {"host": "h", "port": 7000, "db": 3, "username": "u", "password": "p@"}),
        ("unix:///run/s?db=2", {"path": "/run/s", "db": 2}),
        ("unix://:p@/run/s", {"path": "/run/s", "password": "p"}),
        ("redis://h?prefix=a:&socket_timeout=1.5", {"socket_timeout": 1.5, "protocol": 2}),
        ("redis://h?client_name=a%20b", {"client_name": "a b"}),
    ],
)
def test_what_is_not_ours_goes_to_redis_py(url: str, connection: dict[str, Any]) -> None:
    assert options_of(url).connection.items() >= connection.items()


def test_tls_is_chosen_by_the_scheme() -> None:
    for scheme in ("rediss", "valkeys"):
        assert options_of(f"{scheme}://h").connection["connection_class"].__name__ == "SSLConnection"


def test_options_of_ours_are_read() -> None:
    options = options_of(
        "redis://h?prefix={shop}:ql:&deadline=1.5&functions=no&eviction=accept&load=never&requests=given"
    )
    assert (options.prefix, options.deadline, options.functions) == ("{shop}:ql:", 1.5, False)
    assert (options.accept_eviction, options.load, options.fresh_requests) == (True, "never", False)
    assert options.where == "redis://h"


@pytest.mark.parametrize(
    "url, said",
    [
        ("redis://h?prefix=ql", "prefix=ql is not a prefix"),
        ("redis://h?prefix=", "prefix= is not a prefix"),
        ("redis://h?prefix=a*:", "is not a prefix"),
        ("redis://h?prefix={a}{b}:", "is not a prefix"),
        ("redis://h?prefix={}:", "is not a prefix"),
        ("redis://h?prefix=" + "a" * 101 + ":", "is not a prefix"),
        ("redis://h?deadline=soon", "deadline=soon is not a number of seconds"),
        ("redis://h?deadline=-1", "is not a number of seconds"),
        ("redis://h?deadline=nan", "is not a number of seconds"),
        ("redis://h?functions=maybe", "is not yes or no"),
        ("redis://h?load=sometimes", "is not newer, always or never"),
        ("redis://h?max_connections=0", "is not a number above 0"),
        ("redis://h?decode_responses=true", "must not set decode_responses"),
        ("redis://h?retry_on_timeout=true", "must not set retry_on_timeout"),
        ("redis://h?socket_timeout=0", "socket_timeout must be above 0"),
        ("redis://h:port", "is not a URL of a server"),
        ("redis://h/shop", "no number of a database"),
        ("redis://h/shop/1", "no number of a database"),
        ("redis+cluster://h/shop?prefix={a}:", "no number of a database"),
        ("redis://h?socket_timeout=soon", "is not a URL of a server"),
        ("unix://", "names no socket"),
    ],
)
def test_a_bad_url_is_refused_with_the_reason(url: str, said: str) -> None:
    assert said in str(refused(url))


def test_an_option_that_nobody_knows_is_refused() -> None:
    assert "A URL takes no option colour. There are confirm, " in str(refused("redis://localhost?colour=red"))
    assert "no option deadlin. Did you mean deadline?" in str(refused("redis://localhost?deadlin=5"))
    assert "Did you mean socket_timeout?" in str(refused("redis://localhost?socket_timeou=5"))


def test_no_message_shows_the_password() -> None:
    for url in ("redis://:secret@127.0.0.1:1?deadline=0", "redis://user:secret@h:port", "redis://:secret@h?deadline=x"):
        assert "secret" not in str(refused(url))


# ---- nobody there


def test_an_unreachable_server_is_said_when_the_deadline_has_passed() -> None:
    began = time.monotonic()
    assert "redis://127.0.0.1:1 cannot be reached" in str(refused("redis://127.0.0.1:1?deadline=0.3"))
    assert "again for 0.3 seconds" in refused("unix:///nowhere/at/all?deadline=0.3").next_step
    assert "cannot be reached" in str(refused("unix:///nowhere/at/all?connect_deadline=0.1"))
    assert time.monotonic() - began < 50  # by itself a first connection is tried again for a minute


def test_a_socket_that_is_denied_is_said_at_once() -> None:
    cause = PermissionError(13, "Permission denied")
    error = raised.ConnectionError("Error 13 connecting to unix socket")
    error.__context__ = cause
    assert is_hopeless(error, options_of("unix:///run/redis.sock"))
    error.__context__ = FileNotFoundError(2, "No such file")  # the server has not started yet
    assert not is_hopeless(error, options_of("unix:///run/redis.sock"))
    assert is_hopeless(error, options_of("rediss://h?ssl_ca_certs=/no/such"))


def test_a_replica_that_refuses_writes_is_said_at_once() -> None:
    error = raised.ReadOnlyError("You can't write against a read only replica.")
    assert is_hopeless(error, options_of("redis://h"))
    assert "is a replica" in str(diagnose(error, options_of("redis://h")))


def test_a_server_that_does_not_answer_is_said_after_the_time_allowed() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)
        port = listener.getsockname()[1]
        error = refused(f"redis://127.0.0.1:{port}?socket_timeout=0.2&socket_connect_timeout=0.2&deadline=0")
        assert "did not answer" in str(error)


def test_a_server_that_hangs_up_may_speak_tls() -> None:
    def hang_up(listener: socket.socket) -> None:
        for _ in range(2):
            line, _ = listener.accept()
            with line:
                line.recv(100)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)
        threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        assert "rediss://" in str(refused(f"redis://127.0.0.1:{listener.getsockname()[1]}?deadline=0"))


# ---- the wrong server


FOREIGN = "#!lua name=qmodel_v1\nredis.register_function('{name}', function() return {reply} end)"


@SERVER
@KINDS
@pytest.mark.parametrize(("name", "reply"), [("theirs", "1"), ("qmodel_v1_digest", "1"), ("qmodel_v1_digest", "{}")])
def test_a_foreign_library_of_our_name_is_told(name: str, reply: str, kind: str, private: Starter) -> None:
    with private() as server:
        server.client().function_load(FOREIGN.format(name=name, reply=reply))
        with pytest.raises(ForeignLibrary) as error:
            opened(kind, server.url).execute(Length("q"))
        assert error.value.library == "qmodel_v1" and "qmodel_v1" in error.value.sentence
        assert "FUNCTION DELETE qmodel_v1" in error.value.next_step
        beside = opened(kind, server.url + "?functions=no")  # the remedy that needs no deletion
        assert beside.execute(Length("q")) == 0


@SERVER
def test_a_missing_and_a_wrong_password_are_told_apart(private: Starter) -> None:
    with private("--requirepass", "right") as server:
        assert "wants a password, and the URL has none" in str(refused(server.url))
        wrong = server.url.replace("unix://", "unix://:wrong@")
        assert "refused the user name or password" in str(refused(wrong))
        right = connect(server.url.replace("unix://", "unix://:right@"))
        assert right.execute(Length("q")) == 0


@SERVER
def test_a_database_that_is_not_there_is_told(private: Starter) -> None:
    with private() as server:
        error = refused(f"{server.url}?db=99")
        assert "has no database of that number" in error.sentence and "0 to 15" in error.next_step


@SERVER
def test_a_replica_is_refused_and_its_master_named(private: Starter) -> None:
    with private("--replicaof", "127.0.0.1 1") as server:
        error = refused(server.url)
        assert "is a replica" in str(error) and "127.0.0.1:1" in error.next_step


@SERVER
@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
def test_a_server_that_evicts_is_refused_unless_accepted(policy: str, private: Starter) -> None:
    with private("--maxmemory-policy", policy) as server:
        error = refused(server.url)
        assert policy in str(error) and "noeviction" in error.next_step
        assert "EVICTION" in codes(connect(server.url + "?eviction=accept"))


@SERVER
def test_persistence_is_warned_of(private: Starter) -> None:
    def warned(*options: str) -> list[str]:
        with private(*options) as server:
            return codes(connect(server.url))

    assert warned() == ["NO_PERSISTENCE"]
    assert warned("--save", "60 1") == ["NO_AOF"]
    assert warned("--appendonly", "yes", "--appendfsync", "no") == ["NO_FSYNC"]
    assert warned("--appendonly", "yes") == []


@SERVER
def test_a_cluster_needs_a_hash_tag(private: Starter) -> None:
    with private("--cluster-enabled", "yes", "--port", str(free_port())) as server:
        with server.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            wait_until(lambda: "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")))
        error = refused(server.url)
        assert "no hash tag" in str(error) and "prefix={qmodel}:ql:" in error.next_step
        assert replies(connect(server.url + "?prefix={qmodel}:ql:"))[0] == "a"


@SERVER
def test_the_node_of_a_cluster_that_has_the_keys_is_followed(private: Starter) -> None:
    ports = [free_port(), free_port()]
    options = ("--cluster-enabled", "yes", "--port")
    with private(*options, str(ports[0])) as one, private(*options, str(ports[1])) as two:
        with one.client() as first, two.client() as second:
            first.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
            second.execute_command("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
            first.execute_command("CLUSTER", "SET-CONFIG-EPOCH", "1")
            second.execute_command("CLUSTER", "SET-CONFIG-EPOCH", "2")
            first.execute_command("CLUSTER", "MEET", "127.0.0.1", str(ports[1]))
            for client in (first, second):
                wait_until(lambda c=client: "cluster_state:ok" in str(c.execute_command("CLUSTER", "INFO")))  # type: ignore[misc]
        for tag in ("a", "b", "c"):
            backend = connect(f"redis://127.0.0.1:{ports[0]}?prefix={{{tag}}}:&deadline=5")
            assert backend.execute_many([Put("q", "a", "K", ""), Length("q")]) == ["a", 1]
            assert backend.execute(Length("q")) == 1


# ---- a user who may not do everything


def user(server: Private, *rules: str) -> str:
    """The URL of a user with these rules only."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "few", "reset", "on", ">pw", *rules)
        client.function_flush()
    return server.url.replace("unix://", "unix://few:pw@")


@SERVER
def test_what_a_user_may_not_run_is_named(private: Starter) -> None:
    with private() as server:
        allowed = ["~ql:*", "+info", "+config|get", "+function|load"]
        error = refused(user(server, *allowed))
        assert "'fcall'" in str(error) and "+fcall" in error.next_step
        error = refused(user(server, *allowed, "+fcall", "+@read", "+blpop"))
        assert "may not run" in str(error)
        assert "HSET" in str(error) and "+zadd" in error.next_step and "BLPOP" not in str(error)
        error = refused(user(server, "~ql:*", "+info", "+fcall"))
        assert "may not load" in str(error)
        error = refused(user(server, "~other:*", "+@all"))
        assert "lacks a permission" in str(error) and "~ql:*" in error.next_step


@SERVER
def test_the_commands_that_the_library_names_are_all_that_a_user_needs(private: Starter) -> None:
    needed = [f"+{name.lower()}" for name in bundle.commands()]
    with private() as server:
        rules = ["~ql:*", "+info", "+config|get", "+function|load", "+fcall", *needed]
        backend = connect(user(server, *rules))
        assert replies(backend)[0] == "a"
        assert backend.wait(["other"], 0.1) is False
        assert codes(backend) == ["NO_PERSISTENCE"]


@SERVER
def test_who_may_not_ask_about_the_server_is_warned_only(private: Starter) -> None:
    with private() as server:
        backend = connect(user(server, "~ql:*", "+@all", "-info", "-config"))
        assert codes(backend) == ["NO_INFO"]
        backend = connect(user(server, "~ql:*", "+@all", "-config"))
        assert codes(backend) == ["NO_AOF"]


@SERVER
def test_scripts_are_denied_readably_as_well(private: Starter) -> None:
    with private() as server:
        url = user(server, "~ql:*", "+@all", "-script") + "?functions=no"
        assert "script" in str(refused(url))


# ---- TLS


@SERVER
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_tls_works_and_its_mismatches_are_told(tmp_path: Path) -> None:
    program = next((found.program for found in server_commands() if speaks_tls(found.program)), None)
    if program is None:
        pytest.skip("no server here is built with TLS")
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += [*subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    port, plain = free_port(), free_port()
    options = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    options += ["--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no", "--port", str(plain)]
    with started(program, *options):
        trusting = f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}"
        assert connect(trusting).execute(Length("q")) == 0
        assert asyncio.run(connect_async(trusting).execute(Length("q"))) == 0
        assert "no TLS connection" in str(refused(f"rediss://127.0.0.1:{port}"))
        error = refused(f"rediss://127.0.0.1:{plain}?socket_timeout=0.5&socket_connect_timeout=0.5&deadline=0")
        assert "If it speaks no TLS" in str(error)
        assert "rediss://" in str(refused(f"redis://127.0.0.1:{port}?deadline=0"))


def speaks_tls(program: str) -> bool:
    linked = subprocess.run(["ldd", program], check=False, capture_output=True, text=True)
    return "libssl" in linked.stdout


# ---- packing


@pytest.mark.skipif(setup._pack is None, reason="hiredis is not installed")
@pytest.mark.parametrize("functions", [True, False])
@pytest.mark.parametrize("text", ["", "plain", "line\r\nend\x00", "é", "\U0001f600" * 300, "x" * 70_000])
def test_a_call_is_the_same_bytes_with_and_without_hiredis(
    monkeypatch: pytest.MonkeyPatch, functions: bool, text: str
) -> None:
    dialect = Dialect("{shop}:ql:", functions)
    args = encode(Put("q", "a", "K", text, priority=-3, tags=(text, "t"), request="r"), 7)
    packed = dialect.pack(Put, args)
    monkeypatch.setattr(setup, "_pack", None)

    assert dialect.pack(Put, args) == packed
    assert packed.startswith(b"*16\r\n" if functions else b"*17\r\n")


def test_a_batch_looks_no_further_than_its_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, writes = [], Batch._writes
    monkeypatch.setattr(Batch, "_writes", lambda self, first: looked.append(first) or writes(self, first))
    reads = [Get("a"), Get("b")]
    batch = Batch([*reads, *(Put("q", f"j{number}", "K", "") for number in range(4))], None, Dialect("ql:", True), True)
    batch.next()
    assert (batch.expected, looked) == (2, [0, 0, 1, 2])
    looked.clear()
    Batch(reads, None, Dialect("ql:", True), True).next()
    assert looked == [0]


# ---- what redis-py says of itself


def test_all_connections_share_what_redis_py_says_of_itself() -> None:
    pytest.importorskip("redis.driver_info")
    one, other = (settings(options_of(f"redis://{host}"), None) for host in ("one", "other"))
    assert one["driver_info"] is other["driver_info"]
    assert one["driver_info"].lib_version == redis.__version__
    assert "driver_info" not in settings(options_of("redis://one?lib_name=shop"), None)

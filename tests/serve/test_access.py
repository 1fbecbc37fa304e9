"""Who may use the server: web pages may not, other machines need a password, and TLS hides it from the network."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from qmodel.serve.dispatch import open_session
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host, Options
from qmodel.serve.session import PROTECTED, Session
from tests.processes import started
from tests.serve.support import PATIENCE, ROOT, run_to_its_end, serving
from tests.serve.test_commands import Line
from tests.serve.test_resp import packed

PREFIX = "ql:"
POST = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:6380\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 10\r\n\r\nFLUSHALL\r\n"
)


class From(Line):
    """A transport of a connection from an address."""

    address = "127.0.0.1"

    def get_extra_info(self, name: str) -> Any:
        return (self.address, 5)


def joined(options: Options, address: str) -> tuple[Session, From]:
    host = Host(options, ModelExecutor())
    session, line = open_session(host), From()
    line.address = address
    session.connection_made(cast(Any, line))
    return session, line


# ---- web pages


@pytest.mark.parametrize("sent", [POST, POST.replace(b"POST", b"PUT"), POST.lower(), POST.replace(b"\r\n", b"\n")])
def test_a_request_of_a_browser_executes_nothing(sent: bytes) -> None:
    with serving() as server:
        with server.client() as client:
            client.fcall("qmodel_v1_put", 1, PREFIX, "", "", "q", "victim", "K", "x")
            with server.line() as line:
                line.sendall(sent)
                said = b"".join(iter(lambda: line.recv(1 << 16), b""))
            assert b"OK" not in said
            assert client.fcall("qmodel_v1_length", 1, PREFIX, "", "", "q") == 1
        assert "Possible attack: " in server.errors and server.errors.count("\n") == 1
        Path(f"{server.folder}/errors").write_text("")


def test_without_those_lines_inline_commands_are_executed() -> None:
    with serving() as server, server.line() as line:
        line.sendall(b"FLUSHALL\r\n")
        assert line.recv(100) == b"+OK\r\n"


# ---- other machines


@pytest.mark.parametrize(
    ("options", "address", "refused"),
    [
        (Options(address="0.0.0.0"), "192.0.2.7", True),
        (Options(address="0.0.0.0"), "127.0.0.1", False),
        (Options(address="::"), "::ffff:127.0.0.1", False),
        (Options(address="::"), "::ffff:192.0.2.7", True),
        (Options(address="::"), "2001:db8::1", True),
        (Options(address="0.0.0.0", password="x"), "192.0.2.7", False),
        (Options(address="0.0.0.0", users=("ann:x",)), "192.0.2.7", False),
        (Options(address="0.0.0.0", protected=False), "192.0.2.7", False),
    ],
)
def test_without_a_password_other_machines_are_refused(options: Options, address: str, refused: bool) -> None:
    async def main() -> bytes:
        session, line = joined(options, address)
        session.data_received(b"FLUSHALL\r\n")
        return line.said

    said = asyncio.run(main())
    assert (said == f"-{PROTECTED}\r\n".encode()) == refused
    assert refused or said.startswith((b"+OK", b"-NOAUTH"))


def test_the_refusal_says_what_to_do() -> None:
    assert PROTECTED.startswith("DENIED ")
    assert all(option in PROTECTED for option in ("--password", "--user", "--host 127.0.0.1", "--no-protected-mode"))


# ---- users


def test_each_user_has_a_password(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("# the workers\nbob:two:colons\n\n")
    with serving("--user", "ann:one", "--users-file", str(file)) as server:
        for user, password in (("ann", "one"), ("bob", "two:colons")):
            with server.client(username=user, password=password) as client:
                assert client.dbsize() == 0
        for user, password in (("ann", "two"), ("default", "one"), (None, None), ("bob", "")):
            with pytest.raises(redis.RedisError), server.client(username=user, password=password) as client:
                client.dbsize()
        with server.line() as line:
            line.sendall(b"AUTH x y\r\nRESET\r\nDBSIZE\r\n")
            said = b"".join(line.recv(1000) for _ in range(1))
            assert said.startswith(b"-WRONGPASS") and b"-NOAUTH" in said


def test_a_user_name_cannot_forge_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bytes:
        session, line = joined(Options(password="x"), "127.0.0.1")
        session.data_received(b"*3\r\n$4\r\nAUTH\r\n$9\r\nx\r\nERROR\x1b\r\n$1\r\ny\r\n")
        return line.said

    caplog.set_level(logging.INFO)
    assert asyncio.run(main()).startswith(b"-WRONGPASS")
    assert "ERROR" in caplog.text and len(caplog.text.splitlines()) == 1 and "\x1b" not in caplog.text


@pytest.mark.parametrize("right", [True, False])
def test_large_commands_may_follow_the_password_at_once(right: bool) -> None:
    async def main() -> bytes:
        session, line = joined(Options(password="x"), "127.0.0.1")
        large = packed(b"ECHO", b"y" * 20_000)
        session.data_received(packed(b"AUTH", b"x" if right else b"z") + large + large[:9000])
        session.data_received(large[9000:] + packed(b"PING"))
        return line.said

    said = asyncio.run(main())
    if right:
        assert said == b"+OK\r\n" + (b"$20000\r\n" + b"y" * 20_000 + b"\r\n") * 2 + b"+PONG\r\n"
    else:
        assert said.startswith(b"-WRONGPASS") and said.endswith(b"-ERR Protocol error: invalid bulk length\r\n")


def test_what_follows_a_mistake_is_not_kept_while_an_earlier_command_waits() -> None:
    async def main() -> None:
        session, _ = joined(Options(), "127.0.0.1")
        session.data_received(packed(b"BLPOP", b"ql:q:q-wake", b"0") + b"*x\r\n")
        for _ in range(10):
            session.data_received(b"y" * 100_000)
        assert sum(map(len, session.parser._rest)) < 100_000
        session.connection_lost(None)

    asyncio.run(main())


@pytest.mark.parametrize("pair", ["ann", "ann:", ":x"])
def test_a_user_that_cannot_be_read_is_refused(pair: str) -> None:
    code, said = run_to_its_end("--user", pair)
    assert code == 69 and "name:password" in said


# ---- TLS


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture(params=[False, True], ids=["server", "mutual"])
def secured(request: pytest.FixtureRequest, pem: Path) -> Iterator[tuple[int, bool, subprocess.Popen[str]]]:
    """A server with TLS on a free port; in mutual mode it asks for certificates of clients."""
    options = ["--tls-cert", str(pem / "cert.pem"), "--tls-key", str(pem / "key.pem"), "--port", "0"]
    options += ["--tls-ca", str(pem / "cert.pem")] if request.param else []
    command = [sys.executable, "-m", "qmodel", "serve", *options]
    with started(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert " at rediss://127.0.0.1:" in said
        yield int(said.rpartition(":")[2]), request.param, process
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_our_client_works_over_tls(secured: tuple[int, bool, Any], pem: Path) -> None:
    import qmodel

    port, mutual, _ = secured
    url = f"rediss://localhost:{port}?ssl_ca_certs={pem}/cert.pem"
    own = f"&ssl_certfile={pem}/cert.pem&ssl_keyfile={pem}/key.pem" if mutual else ""
    with qmodel.connect(url + own) as client:
        client.queues["q"].put("K", {"a": "x" * 100_000}, jid="j")
        assert client.jobs["j"].data == {"a": "x" * 100_000}
    if mutual:
        with pytest.raises(redis.RedisError), redis.Redis.from_url(url) as bare:
            bare.ping()
    with (
        pytest.raises(redis.RedisError),
        redis.Redis.from_url(f"rediss://localhost:{port}{own and '?' + own[1:]}") as it,
    ):
        it.ping()  # nobody has told this client to trust the certificate
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as line:
        line.sendall(b"PING\r\n")
        assert b"PONG" not in line.recv(100)


@pytest.mark.parametrize("options", [("--tls-key", "x"), ("--tls-cert", "/nonexistent"), ("--tls-cert", __file__)])
def test_files_that_do_not_fit_are_refused(options: tuple[str, str]) -> None:
    code, said = run_to_its_end(*options)
    assert code == 69 and "--tls-cert" in said

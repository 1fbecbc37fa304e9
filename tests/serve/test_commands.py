"""Every command with any words gets a reply, in this process, and no failure is logged."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, cast

import pytest

from qmodel.backends.bundle import script
from qmodel.errors import ConnectError
from qmodel.serve.commands import COMMANDS
from qmodel.serve.dispatch import open_session
from qmodel.serve.functions import FUNCTIONS, OTHERS, ModelExecutor
from qmodel.serve.host import Host, Options
from qmodel.serve.proxy import ProxyExecutor
from qmodel.serve.resp import encode
from qmodel.serve.session import Session
from tests.serve.test_resp import packed


class Line:
    """A transport that keeps the written bytes."""

    def __init__(self) -> None:
        self.said = b""
        self.closed = False

    def get_extra_info(self, name: str) -> Any:
        return "test"

    def write(self, data: bytes) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        return 0


KNOWN = """
ID GETNAME SETNAME SETINFO LIST INFO LOAD DELETE FLUSH STATS EXISTS GET SET CHANNELS NUMSUB NUMPAT DOCS COUNT QMODEL
STREAMS BLOCK AUTH WITHCODE LIBRARYNAME REPLACE FAULT FAULTS HEAL VERDICT SNAPSHOT RESET put q j K ql: ql:events events
ql:q:q-wake q:-wake -wake $ - + (1 1-1 * [ [^ \\ 0 1 2 3 -1 1.5 nan inf 1e400 999999999999999999999999999999 ² ٣ é
delay=5:put
"""
WORDS = (
    *KNOWN.split(), *FUNCTIONS, *OTHERS, "", "a b", "\udcff", "\x00", "x" * 5000, "#!lua name=qmodel_v1\n",
    "local QlessAPI = {} -- KEYS\nQlessAPI.x", script(),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_any_words_are_answered(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        host = Host(Options(judge=True), ModelExecutor())
        session, line = opened(host)
        for word in chance.sample(WORDS, 4) * len(COMMANDS) + ["²"] * len(COMMANDS) + [""] * 150:
            name = chance.choice(list(COMMANDS))
            words = [name, *chance.choices(WORDS, k=chance.randint(0, 6))] if not word else [name, word]
            if chance.random() < 0.2:
                words = [name, *chance.choices(WORDS, k=chance.randint(0, 3)), word]
            if chance.random() < 0.3:
                words = [
                    "FCALL",
                    chance.choice(list(FUNCTIONS)),
                    "1",
                    "ql:",
                    *chance.choices(WORDS, k=chance.randint(0, 8)),
                ]
            before = len(line.said)
            session.data_received(packed(*map(encode, words)))
            assert len(line.said) > before or session.waiting is not None or line.closed or session.pending, words
            if line.closed or session.waiting is not None or host.tasks:
                session.connection_lost(None)
                session, line = opened(host)
        assert host.faults.heal() is None

    caplog.set_level(logging.WARNING)
    asyncio.run(main())
    assert caplog.records == []


def opened(host: Host) -> tuple[Session, Line]:
    """Open a session on a transport that keeps its replies."""
    session, line = open_session(host), Line()
    session.connection_made(cast(Any, line))
    return session, line


def test_a_command_that_fails_is_logged_and_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> bytes:
        host = Host(Options(), ModelExecutor())
        session, line = opened(host)
        monkeypatch.setattr(host.executor, "call", lambda *words: 1 / 0)
        session.data_received(packed(b"FCALL", b"qmodel_v1_length", b"1", b"ql:", b"", b"", b"q") + packed(b"PING"))
        return line.said

    assert asyncio.run(main()).endswith(b"and has logged why\r\n+PONG\r\n")
    assert "ZeroDivisionError" in caplog.text


def test_who_waited_for_events_is_forgotten() -> None:
    """Nothing happens in the namespace, so nothing else would remove it."""

    async def main() -> None:
        executor = ModelExecutor()
        host = Host(Options(), executor)
        for words in ((b"XREAD", b"BLOCK", b"0"), (b"XREAD", b"BLOCK", b"1")):
            session, _ = opened(host)
            session.data_received(packed(*words, b"STREAMS", b"ql:events", b"$"))
            (space,) = executor.spaces
            assert session.waiting is not None and space.is_awaited
            if words[-1] == b"0":
                session.connection_lost(None)
            while session.waiting is not None:
                await asyncio.sleep(0.01)
            assert not space.is_awaited

    asyncio.run(main())


@pytest.mark.parametrize("sent", ["XREAD COUNT {} STREAMS ql:events $", "XREAD BLOCK {} STREAMS ql:events $",
                                  "XRANGE ql:events - + COUNT {}", "SELECT {}"])  # fmt: skip
def test_a_number_of_thousands_of_digits_is_refused(sent: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bytes:
        session, line = opened(Host(Options(), ModelExecutor()))
        session.data_received(f"{sent}\r\n".format("9" * 5000).encode())
        return line.said

    assert asyncio.run(main()).startswith(b"-ERR ") and not caplog.records


def test_a_name_cannot_forge_a_line_of_the_list_of_clients() -> None:
    async def main() -> bytes:
        session, line = opened(Host(Options(), ModelExecutor()))
        hello = packed(b"HELLO", b"3", b"SETNAME", b"x\nid=9 addr=192.0.2.7:5")
        session.data_received(hello + packed(b"CLIENT", b"LIST"))
        return line.said

    said = asyncio.run(main())
    assert said.startswith(b"-ERR ") and b"192.0.2.7" not in said


# ---- in front of another backend


class Gone:
    """A backend that cannot be reached."""

    def wait(self, queues: Any, seconds: float) -> bool:
        raise ConnectError("It is gone.", "Wait.")


class AsyncGone:
    """The same for an event loop."""

    async def wait(self, queues: Any, seconds: float) -> bool:
        raise ConnectError("It is gone.", "Wait.")


def passed(backend: Any) -> Host:
    """Make a host in front of a backend."""
    executor = ProxyExecutor("memory://gone")
    is_async = isinstance(backend, AsyncGone)
    executor._async, executor._blocking = (backend, None) if is_async else (None, backend)
    return Host(Options(), executor)


@pytest.mark.parametrize("backend", [Gone(), AsyncGone()])
def test_who_waits_is_told_that_the_backend_is_gone(backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bytes:
        session, line = opened(passed(backend))
        session.data_received(packed(b"BLPOP", b"ql:q:q-wake", b"0"))
        async with asyncio.timeout(30):
            while not line.said:
                await asyncio.sleep(0.01)
        return line.said

    assert b"It is gone" in asyncio.run(main()) and not caplog.records


def test_a_transaction_waits_for_nothing_behind_the_server() -> None:
    async def main() -> bytes:
        session, line = opened(Host(Options(), ProxyExecutor("memory://behind")))
        session.data_received(packed(b"MULTI") + packed(b"BLPOP", b"ql:q:q-wake", b"0") + packed(b"EXEC"))
        async with asyncio.timeout(30):
            while not line.said.endswith(b"*1\r\n*-1\r\n"):
                await asyncio.sleep(0.01)
        return line.said

    assert asyncio.run(main())


def test_no_password_of_the_backend_is_shown() -> None:
    async def main() -> bytes:
        session, line = opened(Host(Options(url="redis://ann:secret@host"), ModelExecutor()))
        session.data_received(packed(b"INFO"))
        return line.said

    said = asyncio.run(main())
    assert b"redis://ann:***@host" in said and b"secret" not in said


def asked(*words: bytes) -> bytes:
    """Send a command to a server that has one job; give the reply."""

    async def main() -> bytes:
        session, line = opened(Host(Options(), ModelExecutor()))
        session.data_received(packed(b"FCALL", b"qmodel_v1_put", b"1", b"ql:", b"", b"", b"q", b"j", b"K", b"{}"))
        line.said = b""
        session.data_received(packed(*words))
        return line.said

    return asyncio.run(main())


def test_a_read_of_0_entries_is_one_of_all_as_on_redis() -> None:
    read = (b"STREAMS", b"ql:events", b"0")
    assert b"\tput\t" in asked(b"XREAD", b"COUNT", b"0", *read)
    assert b"\tput\t" in asked(b"XREAD", b"COUNT", b"0", b"BLOCK", b"0", *read)


@pytest.mark.parametrize("id", [b"", b"-+", b"(", b"x", b"1-", b"-1"])
def test_an_id_of_a_stream_that_is_none_is_refused(id: bytes) -> None:
    for words in ((b"XRANGE", b"ql:events", id, b"+"), (b"XREAD", b"STREAMS", b"ql:events", id)):
        assert asked(*words).startswith(b"-ERR Invalid stream ID"), words
    assert asked(b"XREAD", b"STREAMS", b"ql:events", b"(1").startswith(b"-ERR Invalid stream ID")

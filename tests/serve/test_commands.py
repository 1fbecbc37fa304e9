"""Every command with any words gets a reply, in this process, and no failure is logged."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, cast

import pytest

from qmodel.backends.bundle import script
from qmodel.serve.commands import COMMANDS
from qmodel.serve.dispatch import open_session
from qmodel.serve.functions import FUNCTIONS, OTHERS, ModelExecutor
from qmodel.serve.host import Host, Options
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

"""BLPOP on a queue's wake-up list; XRANGE and XREAD on the stream of events.

docs/wire.md lets a client read no other keys, so the server has no others.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from qmodel.model.state.store import events_after
from qmodel.serve.commands import command, is_number
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.namespaces import WAKE, Space
from qmodel.serve.proxy import ProxyExecutor
from qmodel.serve.replies import event
from qmodel.serve.resp import NO_LIST, Fault, Pairs
from qmodel.serve.session import LATER, Session

EVENTS: Final = "events"
_ID: Final = re.compile(r"\(?(\d{1,18})(?:-(\d{1,20}))?", re.ASCII)
_END: Final = 1 << 64
_NO_STREAM: Final = Fault("ERR another backend stores the events of this server: use FCALL qmodel_v1_events")


# ---- wake-ups


@command("BLPOP", -3, "write blocking", (1, -2, 1))
def blpop(session: Session, words: list[str]) -> Any:
    """Wait for a wake-up of any of the queues: BLPOP <prefix>q:<queue>-wake ... seconds."""
    keys, seconds = words[1:-1], _seconds(words[-1])
    if isinstance(seconds, Fault):
        return seconds
    if any(not (key.endswith(WAKE) and "q:" in key) for key in keys):
        return Fault("ERR BLPOP waits only for wake-ups here, on <prefix>q:<queue>-wake; see docs/wire.md")
    executor = session.host.executor
    if isinstance(executor, ProxyExecutor):
        return NO_LIST if session.in_exec else _passed(executor, keys, seconds)
    key = executor.take_wake(session.db, keys)
    if key is not None or session.in_exec:
        return NO_LIST if key is None else [key, "1"]
    waiting = _Waiting(session, seconds)
    waiting.waiter = executor.wait(session.db, keys, lambda key: waiting.end([key, "1"]))
    return LATER


async def _passed(executor: ProxyExecutor, keys: list[str], seconds: float) -> Any:
    return await executor.wait(keys, seconds or 86_400.0) or NO_LIST


def _seconds(word: str) -> float | Fault:
    try:
        seconds = float(word)
    except ValueError:
        return Fault("ERR timeout is not a float or out of range")
    if not 0 <= seconds < 1e9:
        return Fault("ERR timeout is negative" if seconds < 0 else "ERR timeout is not a float or out of range")
    return seconds


class _Waiting:
    """A session that waits for a wake-up or for its timeout, whichever comes first."""

    def __init__(self, session: Session, seconds: float) -> None:
        self.session = session
        self.waiter: Any = None
        self.timer = asyncio.get_running_loop().call_later(seconds, self.end, NO_LIST) if seconds else None
        session.waiting = self

    def end(self, reply: Any) -> None:
        """Stop waiting, and reply. The reply is sent after the step that caused the wake-up."""
        self.leave()
        self.session.waiting = None  # only one reply can end it
        asyncio.get_running_loop().call_soon(self.session.resume, reply)

    def leave(self) -> None:
        """Stop waiting."""
        if self.timer is not None:
            self.timer.cancel()
        if self.waiter is not None:
            self.waiter.leave()
            self.waiter = None


# ---- events


def _space(session: Session, key: str) -> Space | Fault:
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return _NO_STREAM
    if not key.endswith(EVENTS):
        return Fault("ERR the only streams here are <prefix>events; see docs/wire.md")
    return executor.spaces.of(session.db, key.removesuffix(EVENTS))


Id = tuple[int, int]


def _entries(space: Space, first: Id, last: Id, most: int) -> list[Any]:
    """Give events as entries of a stream, whose ids are `<sequence>-<epoch>`."""
    found = events_after(space.store, first[0] - 1, most + 1)
    inside = [one for one in found if first <= (one.seq, one.epoch) <= last]
    return [[f"{one.seq}-{one.epoch}", ["e", event(one)]] for one in inside[:most]]


def _bound(word: str, *, first: bool) -> Id | None:
    """Read the first or last id of a range; without its second part, an id stands for all with its first part."""
    if word in ("-", "+"):
        return (0, 0) if word == "-" else (1 << 62, 0)
    found = _ID.fullmatch(word)
    if found is None:
        return None
    part = int(found[2]) if found[2] else (0 if first else _END)
    return int(found[1]), part + (word.startswith("(") * (1 if first else -1))


_BAD_ID: Final = Fault("ERR Invalid stream ID specified as stream command argument")


@command("XRANGE", -4, "readonly", (1, 1, 1))
def xrange(session: Session, words: list[str]) -> Any:
    """Read events: XRANGE <prefix>events first last [COUNT n]."""
    space = _space(session, words[1])
    if isinstance(space, Fault):
        return space
    first, last = _bound(words[2], first=True), _bound(words[3], first=False)
    if first is None or last is None:
        return _BAD_ID
    most = 1 << 30
    if len(words) > 4:
        if len(words) != 6 or words[4].upper() != "COUNT" or not is_number(words[5]):
            return Fault("ERR syntax error")
        most = int(words[5])
    return _entries(space, first, last, most)


@command("XREAD", -4, "readonly blocking movablekeys")
def xread(session: Session, words: list[str]) -> Any:
    """Read events as they occur: XREAD [COUNT n] [BLOCK ms] STREAMS <prefix>events ... id ..."""
    options = _options(words)
    if isinstance(options, Fault):
        return options
    most, block, keys, ids = options
    wanted = []
    for key, word in zip(keys, ids, strict=True):
        space = _space(session, key)
        if isinstance(space, Fault):
            return space
        found = _ID.fullmatch(word)
        if word.startswith("(") or (found is None and word != "$"):
            return _BAD_ID
        wanted.append((key, space, (int(found[1]), int(found[2] or 0)) if found else (space.store.seq, _END)))
    reading = _Reading(session, wanted, most)
    ready = reading.found()
    if ready is not None or block is None or session.in_exec:
        return NO_LIST if ready is None else ready
    reading.wait(block / 1000)
    return LATER


def _options(words: list[str]) -> tuple[int, int | None, list[str], list[str]] | Fault:
    most, block, at = 1 << 30, None, 1
    while at + 1 < len(words) and words[at].upper() in ("COUNT", "BLOCK"):
        if not is_number(words[at + 1]):
            return Fault("ERR value is not an integer or out of range")
        if words[at].upper() == "COUNT":
            most = int(words[at + 1]) or most  # 0 is no limit
        else:
            block = int(words[at + 1])
        at += 2
    rest = words[at + 1 :]
    if at >= len(words) or words[at].upper() != "STREAMS" or not rest or len(rest) % 2:
        return Fault("ERR syntax error")
    return most, block, rest[: len(rest) // 2], rest[len(rest) // 2 :]


class _Reading:
    """One XREAD: the streams that it reads, each with the last id that the client has."""

    def __init__(self, session: Session, wanted: list[tuple[str, Space, Id]], most: int) -> None:
        self.session = session
        self.wanted = wanted
        self.most = most
        self.waiting: _Waiting | None = None

    def found(self) -> Any:
        """Read the events after those ids; None if there are none."""
        last = 1 << 62, 0
        streams = [(key, _entries(space, (seq, part + 1), last, self.most)) for key, space, (seq, part) in self.wanted]
        if not any(entries for _, entries in streams):
            return None
        if self.session.version == 3:
            return Pairs(part for key, entries in streams if entries for part in (key, entries))
        return [[key, entries] for key, entries in streams if entries]

    def wait(self, seconds: float) -> None:
        """Wait until there is an event."""
        self.waiting = _Waiting(self.session, seconds)
        self.waiting.waiter = self
        self._enter()

    def leave(self) -> None:
        """Stop waiting."""
        for _, space, _ in self.wanted:
            space.readers.pop(self.session, None)

    def _enter(self) -> None:
        for _, space, _ in self.wanted:
            space.readers[self.session] = self._look

    def _look(self) -> None:
        if self.waiting is None or self.session.waiting is not self.waiting:
            return
        found = self.found()
        if found is None:
            self._enter()
        else:
            self.waiting.end(found)
            self.waiting = None

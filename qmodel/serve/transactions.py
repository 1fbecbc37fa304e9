"""MULTI, EXEC and DISCARD; FLUSHDB and FLUSHALL.

Between MULTI and EXEC commands are queued. On the model EXEC executes them without other commands in between, and the
journal has all of them or none. On another backend EXEC executes them in order, without atomicity.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from qmodel.serve.commands import COMMANDS, Command, command
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.resp import OK, Fault, Status
from qmodel.serve.session import Session

AT_ONCE: Final = {"EXEC", "DISCARD", "MULTI", "QUIT", "RESET"}
"""The commands that are executed, not queued, between MULTI and EXEC."""

MOST_QUEUED: Final = 100_000


def keep(session: Session, words: list[str], found: Command | None, error: Fault | None) -> Any:
    """Queue a command for EXEC; an error makes EXEC abort."""
    assert session.queued is not None
    if error is None and (found is None or ("pubsub" in found.flags and found.name != "PUBLISH")):
        error = Fault(f"ERR {words[0].upper()[:64]} is not allowed between MULTI and EXEC here")
    if error is None and len(session.queued) >= MOST_QUEUED:
        error = Fault(f"ERR more than {MOST_QUEUED} commands between MULTI and EXEC")
    if error is not None:
        session.spoiled = True
        return error
    session.queued.append(words)
    return Status("QUEUED")


@command("MULTI", 1, "noscript loading stale fast")
def multi(session: Session, words: list[str]) -> Any:
    """Queue the following commands for EXEC."""
    if session.queued is not None:
        return Fault("ERR MULTI calls can not be nested")
    session.queued, session.spoiled = [], False
    return OK


@command("DISCARD", 1, "noscript loading stale fast")
def discard(session: Session, words: list[str]) -> Any:
    """Discard the commands since MULTI."""
    if session.queued is None:
        return Fault("ERR DISCARD without MULTI")
    session.queued = None
    return OK


@command("EXEC", 1, "noscript loading stale")
def exec_(session: Session, words: list[str]) -> Any:
    """Execute the commands since MULTI."""
    kept, session.queued = session.queued, None
    if kept is None:
        return Fault("ERR EXEC without MULTI")
    if session.spoiled:
        return Fault("EXECABORT Transaction discarded because of previous errors.")
    if isinstance(session.host.executor, ModelExecutor):
        return [_one(session, one) for one in kept]
    return _passed(session, kept)


def _one(session: Session, words: list[str]) -> Any:
    session.in_exec = True
    try:
        return COMMANDS[words[0].upper()].run(session, words)
    finally:
        session.in_exec = False


async def _passed(session: Session, kept: list[list[str]]) -> list[Any]:
    replies = []
    for words in kept:
        found = _one(session, words)
        replies.append(await found if inspect.iscoroutine(found) else found)
    return replies


@command("FLUSHDB", -1, "write")
def flushdb(session: Session, words: list[str]) -> Any:
    """Empty the database: all its namespaces."""
    return _flush(session, session.db)


@command("FLUSHALL", -1, "write")
def flushall(session: Session, words: list[str]) -> Any:
    """Empty all databases."""
    return _flush(session, None)


def _flush(session: Session, db: int | None) -> Any:
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return Fault("ERR this server does not empty the backend that stores the jobs; use the backend itself")
    executor.clear(db)
    if session.host.record is not None:
        session.host.record.cleared(db)
    return OK

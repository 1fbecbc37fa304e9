"""Dispatch: check each command of a session, execute it from the table, and let a fault meet it if a rule says so."""

from __future__ import annotations

import asyncio
from types import CoroutineType
from typing import Any, Final

from qmodel.serve import connection, debug, info, library, lists, pubsub, scripts, transactions, wait
from qmodel.serve.commands import COMMANDS, Command, unknown, usage
from qmodel.serve.faults import SENTENCES, Rule
from qmodel.serve.host import Host
from qmodel.serve.resp import Fault
from qmodel.serve.session import LATER, NOTHING, Session

TABLES: Final = (connection, debug, info, library, lists, pubsub, scripts, transactions, wait)
"""The modules that add commands to the table."""

_WHILE_SUBSCRIBED: Final = {"SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PING", "QUIT", "RESET"}
"""The commands that a session of protocol version 2 may send while it is subscribed to channels."""

_OF_HTTP: Final = frozenset(("POST", "HOST:"))
"""First words of the lines of an HTTP request. A web page could make a browser send commands in its body, so
the connection is closed; Redis does the same."""


def open_session(host: Host) -> Session:
    """Make the session of a new connection."""
    return Session(host, perform)


def perform(session: Session, words: list[str]) -> None:
    """Execute a command, or reply why it is not executed."""
    host = session.host
    found = COMMANDS.get(words[0]) or COMMANDS.get(words[0].upper())
    if found is None and words[0].upper() in _OF_HTTP:
        session.refuse_web_page()
        return
    host.performed += 1
    error = _error(session, words, found)
    if session.queued is not None and (found is None or found.name not in transactions.AT_ONCE):
        session.say(transactions.keep(session, words, found, error))
        return
    if error is not None or found is None:
        if host.judge is not None and found is None:
            host.judge.unknown(session.id, words)
        session.say(error)
        return
    host.caller = session.id
    rule = host.faults.strike(words) if host.faults.rules else None
    if rule is not None:
        _strike(session, words, found, rule)
    else:
        _answer(session, found.run(session, words))


def _error(session: Session, words: list[str], found: Command | None) -> Fault | None:
    """The error of a command that must not be executed, or None."""
    if not session.authenticated and (found is None or "no_auth" not in found.flags):
        return Fault("NOAUTH Authentication required.")
    if found is None:
        return unknown(words[0])
    if not found.fits(words):
        return usage(found.name)
    if (session.channels or session.patterns) and session.version == 2 and found.name not in _WHILE_SUBSCRIBED:
        shown = found.name.lower()
        return Fault(
            f"ERR Can't execute '{shown}': a subscribed connection may only send "
            "(P)SUBSCRIBE, (P)UNSUBSCRIBE, PING, QUIT, RESET"
        )
    return None


def _answer(session: Session, reply: Any) -> None:
    if reply is LATER:
        session.hold()
    elif isinstance(reply, CoroutineType):
        session.wait_for(reply)
    elif reply is not NOTHING:
        session.say(reply)


# ---- faults


def _strike(session: Session, words: list[str], found: Command, rule: Rule) -> None:
    """Apply the fault of a rule to a command."""
    host = session.host
    if rule.fault in SENTENCES:
        if rule.fault == "not-found":
            host.loaded = False
        elif rule.fault == "noscript":
            host.scripts.clear()
        session.say(Fault(SENTENCES[rule.fault]))
    elif rule.fault == "drop":
        session.cut()
    else:
        reply = found.run(session, words)
        host.withhold(session)  # the command was executed, so the journal keeps it even if the reply is lost
        if reply is LATER or reply is NOTHING:
            _answer(session, reply)
        else:
            session.wait_for(_spoil(session, reply, rule))
    if host.judge is not None:
        host.judge.strike(session.id, words, rule.fault)


async def _spoil(session: Session, reply: Any, rule: Rule) -> Any:
    """Reply late, in part, or not at all."""
    if isinstance(reply, CoroutineType):
        reply = await reply
    if rule.fault == "delay":
        await asyncio.sleep(rule.ms / 1000)
        return reply
    if rule.fault == "cut":
        session.break_off(reply)
    else:
        session.cut()
    return NOTHING

"""The host: what all sessions share, and the one place through which every command goes."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import time
from dataclasses import dataclass, field
from typing import Any, Final

from qmodel.serve import channels, facts, library, scripts, transactions, waiting
from qmodel.serve.commands import COMMANDS, Command, unknown, usage
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.journal import EVERY, Journal, JournalError
from qmodel.serve.passing import PassingExecutor
from qmodel.serve.resp import Fault, Limits
from qmodel.serve.session import LATER, NOTHING, Session

TABLES: Final = (channels, facts, library, scripts, transactions, waiting)
"""The modules that enter commands in the table."""

_LISTENING: Final = {"SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PING", "QUIT", "RESET"}
"""What a session of version 2 may send while it listens to channels."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve."""

    address: str = "127.0.0.1"
    port: int = 6380
    socket: str = ""
    url: str = "memory://"
    data: str = ""
    password: str = ""
    databases: int = 16
    connections: int = 10_000
    snapshot_every: int = EVERY
    limits: Limits = field(default_factory=Limits)


class Host:
    """What all sessions share."""

    def __init__(
        self, options: Options, executor: ModelExecutor | PassingExecutor, journal: Journal | None = None
    ) -> None:
        self.options = options
        self.executor = executor
        self.journal = journal
        self.failure: JournalError | None = None
        self.stopping = asyncio.Event()
        self.port = options.port
        self.loaded = True
        self.scripts: dict[str, scripts.Known] = {}
        self.channels = channels.Channels()
        self.sessions: dict[Session, None] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self.received = self.performed = 0
        self._withheld: dict[Session, None] = {}
        self._began = time.monotonic()

    @property
    def uptime(self) -> float:
        """For how many seconds it has run."""
        return time.monotonic() - self._began

    # ---- sessions

    def enter(self, session: Session) -> bool:
        """Take a new session; say whether there was room."""
        self.received += 1
        session.id = self.received
        if len(self.sessions) >= self.options.connections:
            return False
        self.sessions[session] = None
        return True

    def leave(self, session: Session) -> None:
        """Forget a session."""
        self.sessions.pop(session, None)
        self.channels.leave(session)

    def admit(self, session: Session, user: str, password: str) -> bool:
        """Check a password; say whether it is right."""
        wanted = self.options.password
        given = password.encode("utf-8", "surrogateescape")
        if user != "default" or (wanted and not hmac.compare_digest(given, wanted.encode())):
            return False
        session.trusted = True
        session.parser.limits = self.options.limits
        return True

    def withhold(self, session: Session) -> bool:
        """Keep back what a session has to say until the journal is written; say whether that is needed.

        It is written before anything else that comes in later: an event loop runs what it was given in order.
        """
        if self.failure is not None:
            return True
        if self.journal is None or not self.journal.dirty:
            return False
        if not self._withheld:
            asyncio.get_running_loop().call_soon(self._commit)
        self._withheld[session] = None
        return True

    def _commit(self) -> None:
        """Write the journal, then say what was withheld. If it cannot be written, nobody is answered any more."""
        withheld, self._withheld = self._withheld, {}
        assert self.journal is not None and isinstance(self.executor, ModelExecutor)
        try:
            self.journal.commit()
            if self.journal.is_long(self.executor.spaces):
                self.journal.snapshot(self.executor.spaces)
        except JournalError as error:
            self.failure = error
            self.stopping.set()
            for session in list(self.sessions):
                session.cut()
            return
        for session in withheld:
            session.send()

    # ---- commands

    def perform(self, session: Session, words: list[str]) -> None:
        """Execute a command, or say why not."""
        self.performed += 1
        found = COMMANDS.get(words[0]) or COMMANDS.get(words[0].upper())
        wrong = self._wrong(session, words, found)
        if session.queued is not None and (found is None or found.name not in transactions.AT_ONCE):
            session.say(transactions.keep(session, words, found, wrong))
            return
        if wrong is not None or found is None:
            session.say(wrong)
            return
        reply = found.run(session, words)
        if reply is LATER:
            session.hold()
        elif inspect.iscoroutine(reply):
            session.wait_for(reply)
        elif reply is not NOTHING:
            session.say(reply)

    def _wrong(self, session: Session, words: list[str], found: Command | None) -> Fault | None:
        """Why a command is not executed, if it is not."""
        if not session.trusted and (found is None or "no_auth" not in found.flags):
            return Fault("NOAUTH Authentication required.")
        if found is None:
            return unknown(words[0])
        if not found.fits(words):
            return usage(found.name)
        if (session.channels or session.patterns) and session.version == 2 and found.name not in _LISTENING:
            shown = found.name.lower()
            return Fault(
                f"ERR Can't execute '{shown}': who listens may only (P)SUBSCRIBE, (P)UNSUBSCRIBE, PING, QUIT, RESET"
            )
        return None

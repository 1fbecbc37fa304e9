"""The host: the state that all connections share, namely options, executor, journal, scripts, channels and faults.

Commands read it and change it. It knows neither the commands nor the class of the sessions: `dispatch` executes
commands, and `Connection` lists what the host needs of a session.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from qmodel import runtime
from qmodel.contract.operations import Operation, Spec
from qmodel.serve import users
from qmodel.serve.channels import Channels, Listener
from qmodel.serve.faults import Faults
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.journal import EVERY, Journal, JournalError
from qmodel.serve.judge import Judge
from qmodel.serve.known_scripts import Known
from qmodel.serve.namespaces import Space
from qmodel.serve.proxy import ProxyExecutor
from qmodel.serve.record import Record
from qmodel.serve.resp import Limits, Parser
from qmodel.serve.tls import Tls

LOG = logging.getLogger("qmodel.serve")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the server."""

    address: str = "127.0.0.1"
    port: int = 6380
    socket: str = ""
    url: str = "memory://"
    data: str = ""
    salvage: bool = False
    password: str = ""
    users: tuple[str, ...] = ()
    users_file: str = ""
    protected: bool = True
    tls: Tls = field(default_factory=Tls)
    databases: int = 16
    connections: int = 10_000
    snapshot_every: int = EVERY
    faults: tuple[str, ...] = ()
    seed: int = 0
    judge: bool = False
    record: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.address in ("localhost", "::1") or self.address.startswith("127.")


class Connection(Listener, Protocol):
    """What the host, and CLIENT LIST, need of a session."""

    id: int
    db: int
    version: int
    name: str
    library: str
    peer: str
    authenticated: bool
    queued: list[list[str]] | None
    waiting: Any
    parser: Parser
    pending: deque[list[str]]

    def send(self) -> None:
        """Send the collected replies now."""

    def end(self) -> None:
        """Send the collected replies, and close."""

    def cut(self) -> None:
        """Close at once, without sending the collected replies."""


class Host:
    """The state that all sessions share."""

    def __init__(
        self, options: Options, executor: ModelExecutor | ProxyExecutor, journal: Journal | None = None
    ) -> None:
        self.options = options
        self.executor = executor
        self.journal = journal
        self.users = users.read(options.password, options.users, options.users_file)
        self.is_protected = options.protected and not self.users and not options.is_local and not options.socket
        self.failure: JournalError | None = None
        self.stopping = asyncio.Event()
        self.port = options.port
        self.loaded = True
        self.scripts: dict[str, Known] = {}
        self.channels = Channels()
        self.sessions: dict[Connection, None] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self.received = self.performed = 0
        self.faults = Faults(options.faults, options.seed)
        self.judge = Judge() if options.judge else None
        self.record = Record(options.record) if options.record else None
        self.caller = 0
        if isinstance(executor, ModelExecutor) and (self.judge or self.record):
            executor.watch = self._watch
        self._withheld: dict[Connection, None] = {}
        self._began = runtime.monotonic()

    @property
    def uptime(self) -> float:
        """Seconds since the server started."""
        return runtime.monotonic() - self._began

    # ---- sessions

    def enter(self, session: Connection) -> bool:
        """Add a new session; say whether there was room for it."""
        self.received += 1
        session.id = self.received
        if len(self.sessions) >= self.options.connections:
            return False
        self.sessions[session] = None
        return True

    def leave(self, session: Connection) -> None:
        """Remove a session, and its subscriptions to channels."""
        self.sessions.pop(session, None)
        self.channels.leave(session)

    def admit(self, session: Connection, user: str, password: str) -> bool:
        """Check a password; say whether it is right."""
        if self.users and not users.fits(self.users, user, password):
            LOG.info("A wrong password for the user %r was sent by %s.", user[:64], session.peer)
            return False
        if not self.users and user != "default":
            return False
        session.authenticated = True
        session.pending += session.parser.allow(self.options.limits)
        return True

    def malformed(self, session: Connection, error: str) -> None:
        """Report to the judge that a session sent bytes that are not RESP."""
        if self.judge is not None:
            self.judge.malformed(session.id, error)

    def withhold(self, session: Connection) -> bool:
        """Withhold the replies of a session until the journal is written; say whether that is needed.

        The journal is written before any later input is handled: an event loop runs callbacks in the order given.
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
        """Write the journal, then send the withheld replies. If the journal cannot be written, send none any more."""
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

    def _watch(
        self, space: Space, spec: Spec, words: Sequence[str], op: Operation | None, now: int, outcome: Any
    ) -> None:
        """Show a call to the judge and to the record."""
        if self.judge is not None:
            self.judge.call(self.caller, space, spec, words, op, outcome)
        if self.record is not None and op is not None:
            self.record.add(space.db, space.prefix, self.caller, now, op)

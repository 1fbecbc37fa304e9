"""The host: what all sessions share, and the one place through which every command goes."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from qmodel.contract.operations import Operation, Spec
from qmodel.serve import channels, debug, info, library, scripts, transactions, wait
from qmodel.serve.commands import COMMANDS, Command, unknown, usage
from qmodel.serve.faults import SENTENCES, Faults, Rule
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.journal import EVERY, Journal, JournalError
from qmodel.serve.judge import Judge
from qmodel.serve.namespaces import Space
from qmodel.serve.proxy import PassingExecutor
from qmodel.serve.record import Record
from qmodel.serve.resp import Fault, Limits
from qmodel.serve.session import LATER, NOTHING, Session

TABLES: Final = (channels, debug, info, library, scripts, transactions, wait)
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
    faults: tuple[str, ...] = ()
    seed: int = 0
    judge: bool = False
    record: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.address in ("localhost", "::1") or self.address.startswith("127.")


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
        self.faults = Faults(options.faults, options.seed)
        self.judge = Judge() if options.judge else None
        self.record = Record(options.record) if options.record else None
        self._speaker = 0
        if isinstance(executor, ModelExecutor) and (self.judge or self.record):
            executor.watch = self._watch
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

    def malformed(self, session: Session, error: str) -> None:
        """Hear of what was not RESP."""
        if self.judge is not None:
            self.judge.malformed(session.id, error)

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
            if self.judge is not None and found is None:
                self.judge.unknown(session.id, words)
            session.say(wrong)
            return
        self._speaker = session.id
        struck = self.faults.strike(words) if self.faults.rules else None
        if struck is not None:
            self._strike(session, words, found, struck)
        else:
            self._answer(session, found.run(session, words))

    def _answer(self, session: Session, reply: Any) -> None:
        if reply is LATER:
            session.hold()
        elif inspect.iscoroutine(reply):
            session.wait_for(reply)
        elif reply is not NOTHING:
            session.say(reply)

    def _watch(
        self, space: Space, spec: Spec, words: Sequence[str], op: Operation | None, now: int, outcome: Any
    ) -> None:
        """See a call."""
        if self.judge is not None:
            self.judge.call(self._speaker, space, spec, words, op, outcome)
        if self.record is not None and op is not None:
            self.record.add(space.db, space.prefix, self._speaker, now, op)

    # ---- faults

    def _strike(self, session: Session, words: list[str], found: Command, rule: Rule) -> None:
        """Let a fault meet a command."""
        if rule.fault in SENTENCES:
            if rule.fault == "not-found":
                self.loaded = False
            elif rule.fault == "noscript":
                self.scripts.clear()
            session.say(Fault(SENTENCES[rule.fault]))
        elif rule.fault == "drop":
            session.cut()
        else:
            reply = found.run(session, words)
            self.withhold(session)  # it is executed, and so kept, whatever becomes of the reply
            if reply is LATER or reply is NOTHING:
                self._answer(session, reply)
            else:
                session.wait_for(self._spoil(session, reply, rule))
        if self.judge is not None:
            self.judge.strike(session.id, words, rule.fault)

    async def _spoil(self, session: Session, reply: Any, rule: Rule) -> Any:
        """Answer late, in part, or not at all."""
        if inspect.iscoroutine(reply):
            reply = await reply
        if rule.fault == "delay":
            await asyncio.sleep(rule.ms / 1000)
            return reply
        if rule.fault == "cut":
            session.break_off(reply)
        else:
            session.cut()
        return NOTHING

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

"""One call: executes operations, converts refusals to qless's messages, and collects the messages to publish."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.operations import Events, Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Job
from qmodel.dialects.qless import texts
from qmodel.model import engine
from qmodel.model.state import tracking
from qmodel.model.state.store import Store

Reply = str | int | list[Any] | None
"""The reply of a call, as Redis converts a Lua value; lists hold texts."""


class Answer(NamedTuple):
    """The reply of a call, and the messages that it published: (channel without prefix, message)."""

    reply: Reply
    published: list[tuple[str, str]]


class QlessError(Exception):
    """A call was refused, with qless's message. `by_state`: the call was valid, but not for the state of the job."""

    def __init__(self, sentence: str, by_state: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.by_state = by_state


NAMES = {
    "delay_ms": "delay",
    "jids": "jid",
    "queues": "queue",
    "workers": "worker",
    "dependencies": "depends",
    "at": "date",
    "interval_ms": "interval",
    "offset_ms": "offset",
}
"""The arguments that have another name in qless."""

SENTENCES = {
    "JOB_NOT_FOUND": "Job {0} does not exist",
    "LOCK_LOST": "Job {0} is not currently running: {2}",
    "WRONG_STATE": "Job {0} is {1}",
    "DEPENDENCY_NOT_FOUND": "Job {1} does not exist",
    "DEPENDENCY_CYCLE": "Jobs would wait for each other for ever: {0}",
    "DEPENDENCY_LIMIT": "Job {0} has more dependents or dependencies than one call can see to (1000)",
    "CANCEL_LIMIT": "Canceling {0} would take more than 1000 jobs or dependencies with it",
    "HAS_DEPENDENTS": "{0} is a dependency of {1} but is not mentioned to be canceled",
    "QUEUE_NOT_EMPTY": "Queue {0} still has jobs: {1}",
    "DUPLICATE_JID": "Job {0} is named twice",
    "SCHEDULE_NOT_FOUND": "No recurring job {0}",
    "UNKNOWN_OPTION": "There is no option {0}",
    "BAD_VALUE": "Option {0} must be from {1} to {2}",
}


class Session:
    """One call."""

    __slots__ = ("document", "now", "published", "sign", "store")

    def __init__(self, store: Store, now: int, document: bool = False) -> None:
        self.store = store
        self.now = now
        self.document = document  # whether replies have the shapes of a document
        self.sign = 1 if document else -1  # of priorities: in qless higher ones run first, in the engine lower ones
        self.published: list[tuple[str, str]] = []

    # ---- the engine

    def ask(self, command: str, op: Operation, **sentences: str) -> Any:
        """Execute an operation. Raises QlessError for a refusal, with the message for its code."""
        reply = engine.step(self.store, self.now, op)
        if type(reply) is Refusal:
            raise _error(command, op, reply, sentences)
        return reply

    def knows(self, command: str, op: Operation) -> bool:
        """Execute an operation on an option; say whether the option exists."""
        reply = engine.step(self.store, self.now, op)
        if type(reply) is Refusal and reply.code != "UNKNOWN_OPTION":
            raise _error(command, op, reply, {})
        return type(reply) is not Refusal

    @property
    def seq(self) -> int:
        """The sequence number of the last event."""
        return self.store.seq

    def events(self, seq: int) -> list[Event]:
        """Read the events after a sequence number, as far as they are kept."""
        found: list[Event] = []
        while True:
            page = self.ask("Events", Events(found[-1].seq if found else seq, MOST))
            found += page
            if len(page) < MOST:
                return found

    # ---- publishing

    def say(self, channel: str, message: str) -> None:
        """Publish a message."""
        self.published.append((channel, message))

    def log(self, *facts: tuple[str, str]) -> None:
        """Publish facts to `log`."""
        self.say("log", texts.record(facts))

    def tracked(self, channel: str, jid: str) -> None:
        """Publish a job's id if the job is tracked."""
        if tracking.is_tracked(self.store, jid):
            self.say(channel, jid)

    def lost(self, jid: str, worker: str) -> None:
        """Publish to a worker, and to the log, that the worker lost a job."""
        told = texts.record((("jid", jid), ("event", "lock_lost"), ("worker", worker)))
        self.say("w:" + worker, told)
        self.say("log", told)


def _error(command: str, op: Operation, refusal: Refusal, sentences: dict[str, str]) -> QlessError:
    code, facts = refusal
    if code == "BAD_ARGUMENT":
        (kind,) = (a.kind for a in op.spec.arguments if a.name == facts[1])
        name = NAMES.get(facts[1], facts[1])
        return QlessError(f'{command}(): Arg "{name}" must be {kind.expected}')
    sentence = sentences.get(code) or SENTENCES[code]
    filled = re.sub(r"\{(\d)\}", lambda found: facts[int(found[1])], sentence)
    return QlessError(f"{command}(): {filled}", by_state=True)


# ---- jobs


def state(job: Job) -> str:
    """Convert a job's state to qless's: a job with a lapsed lease counts as running until a pop takes it."""
    return "running" if job.state == "stalled" and job.worker else job.state

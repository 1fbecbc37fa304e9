"""One call: executes operations, converts refusals to qless's messages, and collects the messages to publish."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.operations import (
    Delay,
    Events,
    MetadataGet,
    MetadataSet,
    MetadataUnset,
    Operation,
    Queues,
    Recurring,
    Throttled,
)
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Job
from qmodel.dialects.qless import texts
from qmodel.model import engine
from qmodel.model.state import config, jobs, metadata, options, parked, pauses, queues, throttles, tracking
from qmodel.model.state import records as stored
from qmodel.model.state.store import Store

Reply = str | int | list[Any] | None
"""The reply of a call, as Redis converts a Lua value; lists hold texts."""


class Answer(NamedTuple):
    """The reply of a call, and the messages that it published: (channel without prefix, message)."""

    reply: Reply
    published: list[tuple[str, str]]


class QlessError(Exception):
    """A call was refused, with qless's message. `by_state`: the call was valid, but not for the state of the job.

    A server writes an error on one line, and so does this one.
    """

    def __init__(self, sentence: str, by_state: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence.replace("\r", " ").replace("\n", " ")
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
    "OVER_BUDGET": "This is too much work for one call: send at most {3} items of this size",
    "LIMIT_REACHED": "The limit of {1} {0} is reached",
    "SCHEDULE_OVER": "Recurring job {0} would have no run",
}


Engine = Callable[[Store, int, Operation], Any]
"""What executes an operation on a store: the engine, or something that looks on."""

LAST = float("inf")

FORGOTTEN = "qless:forgotten"
"""The klass whose metadata name queues with jobs that a binding has taken off the list: gone, or since when back."""

GONE = "gone"


class Session:
    """One call."""

    __slots__ = ("document", "early", "now", "published", "reqless", "sign", "step", "store")

    def __init__(
        self,
        store: Store,
        now: int,
        document: bool = False,
        reqless: bool = False,
        early: bool = False,
        step: Engine = engine.step,
    ) -> None:
        self.store = store
        self.step = step  # executes an operation
        self.now = now
        self.reqless = reqless  # whether the command is one of reqless
        self.early = early  # of those before 0.0.2, which had the names of qless
        self.document = document  # whether replies have the shapes of a document
        self.sign = 1 if document else -1  # of priorities: in qless higher ones run first, in the engine lower ones
        self.published: list[tuple[str, str]] = []

    # ---- the engine

    def ask(self, command: str, op: Operation, **sentences: str) -> Any:
        """Execute an operation. Raises QlessError for a refusal, with the message for its code."""
        reply = self.step(self.store, self.now, op)
        if type(reply) is Refusal:
            raise _error(command, op, reply, sentences)
        return reply

    def ask_at(self, now: int, command: str, op: Operation) -> Any:
        """Execute an operation at another moment."""
        before, self.now = self.now, now
        try:
            return self.ask(command, op)
        finally:
            self.now = before

    def forget(self, queue: str, gone: bool) -> None:
        """Note of a queue whether it is off the list although the engine lists it."""
        if gone:
            self.ask("Queue.forget", MetadataSet(FORGOTTEN, queue, GONE))
        else:
            self.attempt(MetadataUnset(FORGOTTEN, queue))

    def remember(self, queue: str) -> None:
        """List a queue again, as a new one, that `queue.forget` has taken off the list although it had jobs."""
        if self.note(FORGOTTEN, queue) == GONE:
            self.ask("Queue", MetadataSet(FORGOTTEN, queue, str(self.now)))

    def is_listed(self, queue: str) -> bool:
        """Whether a queue is on the engine's list."""
        return queues.of(self.store, queue).first_seen is not None

    def listed(self) -> list[str]:
        """Name the queues on the list, first seen first."""
        seen = []
        for one in self.ask("Queues", Queues(0, MOST)):
            again = self.note(FORGOTTEN, one.name)
            if again != GONE:
                moment = None if again is None else metadata.whole(again)
                seen.append((queues.of(self.store, one.name).first_seen if moment is None else moment, one.name))
        return [name for _, name in sorted(seen)]

    def check(self, command: str, op: Operation) -> None:
        """Refuse a call with an argument that would be refused by an operation that it executes later, after others."""
        bad = engine.fault(op)
        if bad is not None:
            raise _error(command, op, Refusal("BAD_ARGUMENT", (op.spec.name, bad)), {})

    def check_room(self, command: str, klass: str, count: int) -> None:
        """Refuse a call that would give a klass more keys than it may have."""
        if count > metadata.MOST:
            refusal = Refusal("LIMIT_REACHED", (f"keys of klass {klass}", str(metadata.MOST)))
            raise _error(command, MetadataGet(klass), refusal, {})

    def attempt(self, op: Operation) -> Any:
        """Execute an operation; give its reply, or its refusal."""
        return self.step(self.store, self.now, op)

    def note(self, klass: str, key: str) -> str | None:
        """Read a text that the dialect keeps: metadata of a klass that no job has."""
        return metadata.get(self.store, klass, key)

    def option(self, name: str) -> int:
        """Read the engine's value of an option."""
        return config.value(self.store, name)

    def stored(self, jid: str) -> stored.Job | None:
        """Read the record of a job."""
        return jobs.get(self.store, jid)

    def notice(self, command: str, queue: str, most: int) -> int:
        """Make jobs that have become due ready from now; of one moment the later names come first, as in qless.

        Their number is given.
        """
        due = queues.in_time(queues.of(self.store, queue).scheduled, queues.FIRST, self.now, most)
        for jid in sorted((jid for _, jid in due), reverse=True):
            self.ask(command, Delay(jid, 0))
        return len(due)

    def running(self, queue: str) -> int:
        """Count the leases of a queue that have not lapsed."""
        locks = queues.of(self.store, queue).locks
        return len(locks) - queues.count(locks, self.now - 1)

    def leased(self, queue: str, lapsed: bool, offset: int, count: int) -> list[str]:
        """Find the jobs of a queue with leases that have lapsed, or that have not; earliest end first."""
        low, high = (queues.FIRST, self.now) if lapsed else (self.now - 1, LAST)
        found = queues.in_time(queues.of(self.store, queue).locks, low, high, MOST)
        return [jid for _, jid in found[offset : offset + count]]

    def recurring(self, queue: str, offset: int, count: int) -> list[str]:
        """Find the recurring jobs of a queue, next due first; those of one due time by id, among the first 1000."""
        if not count:
            return []
        if offset + count > MOST:
            return list(self.ask("Jobs", Recurring(queue, offset, count)).jids)
        found = queues.in_time(queues.of(self.store, queue).recur, queues.FIRST, LAST, MOST)
        return [jid for _, jid in found[offset : offset + count]]

    def ended(self, queue: str) -> int:
        """Count the jobs of a queue that a timeout has taken from their workers."""
        return queues.count(queues.of(self.store, queue).locks, queues.FIRST)

    def ready(self, queue: str, count: int) -> list[str]:
        """Find the next jobs of a queue without a lease: those taken by a timeout, then those in order."""
        of = queues.of(self.store, queue)
        _, ended = queues.page(of.locks, queues.FIRST, queues.FIRST, 0, MOST)
        return [*sorted(ended, reverse=True), *queues.order(of, 0, count)][:count]

    def is_paused(self, queue: str) -> bool:
        """Whether a queue is paused."""
        return queues.has_pauses(self.store, queue) and bool(pauses.lasting(self.store, self.now, queue))

    def fires(self, queue: str) -> bool:
        """Whether a queue may have due runs."""
        return queues.of(self.store, queue).recur.begins_by(self.now)

    # ---- throttles

    def named(self, jid: str) -> list[str]:
        """Read the throttles that a job names."""
        job = self.stored(jid)
        return [] if job is None else throttles.named(job)

    def holding(self, name: str) -> int:
        """Count the jobs that hold a throttle."""
        return throttles.running(self.store, name)

    def holders(self, name: str) -> list[str]:
        """Find the jobs that hold a throttle."""
        return list(throttles.holders(self.store, name, MOST))

    def holds(self, jid: str, name: str) -> bool:
        """Whether a job holds a throttle."""
        job = self.stored(jid)
        return job is not None and job.state in ("running", "stalled") and name in throttles.counted(job)

    def gate(self, jid: str) -> str | None:
        """Read the throttle that has parked a job, if one has."""
        job = self.stored(jid)
        return options.get(job, "gate") if job is not None and job.state == "throttled" else None

    def ready_of(self, jids: Iterable[str]) -> list[str]:
        """Of some jobs those that wait, and are ready from this moment; or would be, had the clock not gone back since
        their put.
        """
        found = []
        for jid in jids:
            job = self.stored(jid)
            again = job is not None and job.state == "scheduled" and job.ready_at == job.put_at
            if again:
                self.ask("Delay", Delay(jid, 0))
            if again or (job is not None and job.state == "waiting" and job.ready_at == self.now):
                found.append(jid)
        return found

    def parked_at(self, name: str) -> list[str]:
        """Find the jobs that are parked at a throttle, first parked first."""
        return [jid for _, jid in sorted(parked.waiting(self.store, name, MOST))]

    def parked_in(self, queue: str) -> list[str]:
        """Find the jobs of a queue that are parked, first parked first."""
        jids = self.ask("Jobs", Throttled(queue, 0, MOST)).jids
        return [jid for _, jid in sorted((int(self.store.jobs[jid].options.get("parked", 0)), jid) for jid in jids)]

    # ---- events

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

    def log(self, *facts: tuple[str, str | bool]) -> None:
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


def state(session: Session, job: Job) -> str:
    """Give a job's state as it is stored: a job that is due is scheduled, and one with a lapsed lease is running, until
    a pop notices. A job that a timeout has taken is stalled until its next claim. A job that waits for a throttle is
    `waiting` for qless, which has none, and one that was admitted is `throttled` for reqless until its next claim.
    """
    found = session.stored(job.jid)
    now = job.state if found is None else found.state
    if now == "waiting" and "ended" in dict(job.options):
        return "stalled"
    if not session.reqless:
        return "waiting" if now == "throttled" else now
    return "throttled" if now == "waiting" and "gate" in dict(job.options) else now

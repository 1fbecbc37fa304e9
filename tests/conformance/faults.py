"""Wrong copies of the model with one fault each, as real queues had them. The suite must find them all.

A fault replaces functions while the wrong copy executes, and only then: the right one stays right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qmodel.conformance.subjects.base import ModelSubject
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.replies import Failure
from qmodel.model import engine
from qmodel.model.ops import change, depend, finish, pop, put
from qmodel.model.rules import failure
from qmodel.model.state import (
    completed,
    config,
    dependencies,
    history,
    idempotency,
    jobs,
    queues,
    state_index,
    stats,
    tags,
    workers,
)
from qmodel.model.state.store import Store


@dataclass(frozen=True)
class Fault:
    """A fault: its description, its place, and the least number of steps that show it."""

    name: str
    module: Any
    function: str
    wrong: Any
    steps: int


class Wrong(ModelSubject):
    """Executes operations on a model with a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.name = fault.name
        self.fault = fault

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation, wrongly."""
        fault = self.fault
        right = getattr(fault.module, fault.function)
        setattr(fault.module, fault.function, fault.wrong)
        try:
            return super().step(now, op)
        finally:
            setattr(fault.module, fault.function, right)


class WrongVerb(ModelSubject):
    """Executes operations on a model with one verb replaced."""

    def __init__(self, name: str, verb: Callable[..., Any]) -> None:
        super().__init__()
        self.name = name
        self._cls = CATALOGUE[name].cls
        self._verb = verb

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation, wrongly."""
        right = engine._VERBS[self._cls]
        engine._VERBS[self._cls] = (lambda *given: self._verb(right[0], *given), *right[1:])
        try:
            return super().step(now, op)
        finally:
            engine._VERBS[self._cls] = right


def _held_by_anyone(store: Store, jid: str, token: int, what: str = "") -> Any:
    job = jobs.find(store, jid)
    if job.state == "running":
        return job, None
    raise jobs.refuse("LOCK_LOST", jid, token, job.state, job.worker)


def _higher_first(store: Store, job: Any) -> None:
    queue = queues._made(store, job.queue)
    queue.ready.add((-job.priority, job.ready_at, job.seq, job.jid))
    if queue.idle:
        queue.idle -= 1
        queue.wakes += 1


_take_back = pop._take_back
_add_tag, _lapsed, _due, _unblock = tags.add, queues.lapsed, queues.due, depend.unblock


def _uncounted(store: Store, now: int, job: Any) -> bool:
    remaining = job.remaining
    again = _take_back(store, now, job)
    job.remaining = remaining
    return again


def _all_freed(store: Store, job: Any) -> list[Any]:
    freed = [store.jobs[jid] for jid in sorted(job.dependents)]
    for waiting in freed:
        del waiting.dependencies[job.jid]
    job.dependents.clear()
    return freed


def _at_once(store: Store, now: int, job: Any) -> None:
    job.ready_at = now
    _unblock(store, now, job)


def _forgetful(store: Store, now: int, job: Any, group: str, message: str, ended: int = 0) -> None:
    failure.emit(store, now, "failed", job.jid, job.queue, job.worker, job.token, group)
    history.add(store, now, job, "failed", ended, group)
    stats.failed(store, now, job.queue)
    job.failure = Failure(group, message, now, "")
    job.worker = job.grant = ""
    job.expires_at = 0
    job.ended_at = now
    jobs.place(store, job, "failed")


HIGHER_FIRST = (_higher_first, queues.pull)

FAULTS = (
    Fault("a late worker may finish", jobs, "held", _held_by_anyone, 3),
    Fault("higher priority first", state_index, "PLAIN", {**state_index.PLAIN, "waiting": HIGHER_FIRST}, 1),
    Fault("a lapse is not counted", pop, "_take_back", _uncounted, 3),
    Fault("a lease lapses a moment late", queues, "lapsed", lambda s, n, at, m: _lapsed(s, n, at - 1, m), 3),
    Fault("a due job waits a moment longer", queues, "due", lambda s, n, at, m: _due(s, n, at - 1, m), 3),
    Fault("an unfail is not counted", stats, "recovered", lambda store, at, queue: None, 4),
    Fault("one dependency of several suffices", dependencies, "resolve", _all_freed, 5),
    Fault("a released job forgets its delay", depend, "unblock", _at_once, 3),
    Fault("a failure forgets its worker", finish, "bury", _forgetful, 3),
    Fault("a put is not recognised as a resend", put, "_is_resend", lambda s, j, r: False, 2),
    Fault("a request is not remembered", idempotency, "remember", lambda s, r, reply: None, 1),
    Fault("a grant is not remembered", workers, "remember", lambda s, n, r, jids: None, 2),
    Fault("a queue's own heartbeat is ignored", config, "heartbeat", lambda s, q: config.value(s, "heartbeat"), 3),
    Fault("no complete job is ever retired", completed, "expired", lambda store, now, most: [], 6),
    Fault("histograms round up", stats, "bin_of", lambda ms: -(-ms // 1000), 2),
    Fault("a history is never cut", history, "add", lambda s, n, j, w, *f: j.history.extend((w, n, f)), 6),
    Fault("a delay of nothing is a delay", change, "begins", lambda now, job: "scheduled", 2),
)  # fmt: skip

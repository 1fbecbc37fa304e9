"""Put what a namespace of the original holds into a namespace of qmodel.

Each job is put, and led to its state, by the operations that lead there: a failed one is put, popped and failed, each
at its moment in the original. So everything that qmodel derives (order, leases, groups, statistics of days) is right by
itself. The order of work makes every pop take the job that it is for: such a job is put with the first of all
priorities, gets its own once it is leased, and jobs with leases come last, the latest lease first, because a pop would
take a job with a lease that has ended by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final

from qmodel.contract import operations as ops
from qmodel.contract.arguments import TIME_END
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.dialects.qless import settings, throttles
from qmodel.dialects.qless.original import OldJob, OldSchedule, Original, dependencies_first
from qmodel.dialects.qless.session import QlessError, Session
from qmodel.model.state.store import Store

Execute = Callable[[Operation, int], Any]
"""Executes an operation at a moment (milliseconds since the epoch); gives its reply, or its Refusal as data."""

FIRST: Final = -(2**31)
"""The priority of a job that the next pop shall take; in the engine lower ones run first."""

MOST_RETRIES: Final = 100
"""How many spent retries of one job are replayed at most."""

LONG: Final = 1e8
"""Seconds from now for which a job is scheduled that gets its moment later."""

NOBODY: Final = "unknown"
"""The worker of a job that the original does not name."""


@dataclass(slots=True)
class Report:
    """What was converted, by state, and what was not: the job or recurring job, and why."""

    converted: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[str, str]] = field(default_factory=list)


class _Refused(Exception):
    """An operation was refused."""


class _Session(Session):
    """Commands of the dialect that ask the engine only, wherever it is."""

    def __init__(self, execute: Execute, now: int) -> None:
        super().__init__(Store(), now)
        self._execute = execute

    def attempt(self, op: Operation) -> Any:
        """Execute an operation; give its reply or its refusal."""
        return self._execute(op, self.now)

    def ask(self, command: str, op: Operation, **sentences: str) -> Any:
        """Execute an operation. Raises QlessError for a refusal."""
        reply = self.attempt(op)
        if type(reply) is Refusal:
            raise QlessError(reply.sentence)
        return reply


def convert(found: Original, execute: Execute, now: int, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Put everything into an empty namespace; `now` is the present moment in milliseconds."""
    return _Conversion(found, execute, now, progress).run()


RETENTION = {"jobs-history": 10 * 31_622_400_000, "jobs-history-count": 10**9}
"""The options that delete complete jobs, and the most that each can be."""


class _Conversion:
    def __init__(self, found: Original, execute: Execute, now: int, progress: Callable[[Report], None]) -> None:
        self._found = found
        self._execute = execute
        self._now = now
        self._progress = progress
        self._report = Report()
        self._session = _Session(execute, now)
        self._used: set[str] = set()  # the queues that have got jobs
        self._met: set[str] = set()  # the jobs that were in a list
        self._leases: dict[str, int] = {}  # how long a lease of each queue is at present

    def run(self) -> Report:
        found = self._found
        for option, value in found.config.items():
            self._try(option, "option", self._set, option, value)
        for option, most in RETENTION.items():  # the next completion applies it, not the conversion
            self._ask(self._now / 1000, ops.ConfigSet(option, most))
        self._list_queues()
        self._all(self._complete, self._named(found.complete, "complete"))
        self._all(self._fail, self._named(found.failed, "failed"))
        for job in found.jobs.values():
            if job.failure and job.state not in ("failed", "complete"):
                self._fail_before(job)
        for job in self._in("waiting") + self._in("scheduled"):
            if job.remaining < job.retries:
                self._spend(job)
        self._all(self._run, sorted(self._in("running") + self._in("stalled"), key=lambda job: -_last(job)))
        for name, most, left in found.throttles:
            self._try(name, "throttle", throttles.throttle_set, self._session, name, str(most), str(left))
        for jids in found.throttled.values():
            self._all(self._park, self._named(jids, "throttled"))
        for line in found.lines.values():
            self._stand(line)
        self._all(self._schedule, self._in("scheduled"))
        self._all(self._depend, dependencies_first(self._in("depends")))
        for schedule in found.schedules:
            self._try(schedule.jid, "recurring", self._recur, schedule)
        self._name_the_lost()
        self._set_what_would_hinder()
        return self._report

    # ---- the order of work

    def _named(self, jids: Iterable[str], *states: str) -> Iterator[OldJob]:
        """The jobs of these ids that are in one of some states: a list may name others that have left it."""
        for jid in jids:
            job = self._found.jobs.get(jid)
            if job is not None and job.state in states:
                yield job

    def _in(self, state: str) -> list[OldJob]:
        return [job for job in self._found.jobs.values() if job.state == state]

    def _all(self, lead: Callable[[OldJob], None], jobs: Iterable[OldJob]) -> None:
        for job in jobs:
            self._met.add(job.jid)
            self._try(job.jid, job.state, lead, job)

    def _try(self, name: str, kind: str, act: Callable[..., Any], *arguments: Any) -> None:
        """Convert one thing, and count it; what is refused is named."""
        try:
            act(*arguments)
        except (_Refused, QlessError) as refused:
            self._report.refused.append((name, str(refused)))
        else:
            self._report.converted[kind] += 1
        self._progress(self._report)

    def _ask(self, now: float, op: Operation) -> Any:
        """Execute an operation at a moment in seconds."""
        reply = self._execute(op, _milliseconds(now))
        if type(reply) is Refusal:
            raise _Refused(reply.sentence)
        return reply

    # ---- jobs

    def _put(self, job: OldJob, priority: int | None = None, delay: float = 0, depends: Sequence[str] = ()) -> None:
        queue = job.queue or self._last_queue(job)
        self._used.add(queue)
        op = ops.Put(
            queue,
            job.jid,
            job.klass,
            job.data,
            -int(job.priority) if priority is None else priority,
            _milliseconds(delay),
            job.retries,
            depends=tuple(depends) or None,
            throttles=throttles.kept(job.throttles) or None,
        )
        self._ask(_put_at(job), op)

    def _last_queue(self, job: OldJob) -> str:
        """A complete job has no queue in the original; its history names the one that it was put into."""
        return next((stage.queue for stage in reversed(job.history) if stage.queue), NOBODY)

    def _lease(self, job: OldJob, worker: str, at: float, retries: int = 0) -> int:
        """Put a job, let it spend its retries, and lease it; give the token."""
        self._put(job, FIRST)
        token = self._pop(job, worker, at)
        for _ in range(min(retries, MOST_RETRIES)):
            self._ask(at, ops.Retry(job.jid, token))
            token = self._pop(job, worker, at)
        self._ask(at, ops.Priority(job.jid, -int(job.priority)))
        return token

    def _pop(self, job: OldJob, worker: str, at: float) -> int:
        queue = job.queue or self._last_queue(job)
        (leased,) = self._ask(at, ops.Pop(queue, worker)) or (None,)
        if leased is None or leased.jid != job.jid:
            raise _Refused(f"queue {queue} gave {leased and leased.jid} to the pop for {job.jid}")
        return int(leased.token)

    def _complete(self, job: OldJob) -> None:
        token = self._lease(job, _worker(job), _popped_at(job))
        self._ask(_last(job), ops.Complete(job.jid, token))

    def _fail(self, job: OldJob) -> None:
        failure = job.failure
        group, message = str(failure.get("group", NOBODY)), str(failure.get("message", ""))
        worker = str(failure.get("worker", "")) or _worker(job)
        token = self._lease(job, worker, _popped_at(job), job.retries - max(job.remaining, 0))
        said = failure.get("when")
        when = said if isinstance(said, int | float) else _last(job)
        if job.remaining >= 0:
            self._ask(when, ops.Fail(job.jid, token, group, message))
        else:
            self._ask(when, ops.Retry(job.jid, token, 0, group, message))

    def _fail_before(self, job: OldJob) -> None:
        """Fail a job that goes on later: it keeps its last failure."""
        with suppress(_Refused):
            self._fail(replace(job, remaining=job.retries))

    def _stand(self, line: Sequence[tuple[str, float]]) -> None:
        """Let the jobs of a queue wait in their order.

        A score is the priority less the moment of entry, in units of 10^10 s. A moment of 0 means that the
        priority of the job was changed: it is the first of its priority.
        """
        first = []
        for jid, score in line:
            for job in self._named([jid], "waiting", "throttled"):  # reqless says so after the throttle
                self._met.add(jid)
                entered = (job.priority - score) * 1e10
                if entered < 1:
                    first.append(job)
                self._try(jid, job.state, self._wait, replace(job, entered=max(entered, 0)))
        for job in reversed(first):
            self._try(job.jid, "first", self._ask, _put_at(job), _first(job))
        for job in self._named((jid for jid, _ in reversed(line)), "stalled"):
            self._try(job.jid, "timed out", self._ask, self._now / 1000, ops.Timeout((job.jid,)))
        for job in self._named((jid for jid, score in line if score < inf), "stalled"):  # `priority` has moved it
            self._try(job.jid, "first", self._ask, self._now / 1000, _first(job))

    def _wait(self, job: OldJob) -> None:
        if job.remaining < job.retries:
            self._ask(_put_at(job), ops.Promote(job.jid))
        else:
            self._put(job)

    def _schedule(self, job: OldJob) -> None:
        if job.remaining < job.retries:
            self._ask(_popped_at(job), ops.Delay(job.jid, _milliseconds(job.due - _popped_at(job))))
        else:
            self._put(job, delay=job.due - _put_at(job))

    def _spend(self, job: OldJob) -> None:
        """Let a job spend its retries, and schedule it for much later; it gets its moment or its place when its turn
        comes."""
        at = _popped_at(job)
        with suppress(_Refused):
            token = self._lease(job, _worker(job), at, job.retries - job.remaining - 1)
            self._ask(at, ops.Retry(job.jid, token, _milliseconds(self._now / 1000 + LONG - at)))

    def _park(self, job: OldJob) -> None:
        """Put a job that waits for a throttle; it is ready if the throttle has room after all."""
        self._put(job)
        self._ask(_put_at(job), ops.Delay(job.jid, 0, qless=True))

    def _run(self, job: OldJob) -> None:
        at, ends = _last(job), job.expires
        if job.state == "stalled":
            ends = at + 60  # until the next step
        at = min(at, ends)
        lease = _milliseconds(ends) - _milliseconds(at)
        if self._leases.get(job.queue) != lease:
            self._ask(at, ops.ConfigSet(f"heartbeat-{job.queue}", lease))
            self._leases[job.queue] = lease
        self._lease(job, job.worker or NOBODY, at, job.retries - job.remaining)

    def _depend(self, job: OldJob) -> None:
        unfinished = [
            jid for jid in job.depends if jid in self._found.jobs and self._found.jobs[jid].state != "complete"
        ]
        self._put(job, delay=job.due - _put_at(job) if job.due else 0, depends=unfinished)

    # ---- what is no job

    def _recur(self, schedule: OldSchedule) -> None:
        self._used.add(schedule.queue)
        op = ops.Recur(
            schedule.queue,
            schedule.jid,
            schedule.klass,
            schedule.data,
            _milliseconds(schedule.interval),
            priority=-int(schedule.priority),
            retries=schedule.retries,
            tags=schedule.tags,
            backlog=schedule.backlog,
            start_at=_milliseconds(int(schedule.next)),  # due times are whole seconds in qless
            runs=schedule.count,
            throttles=throttles.kept(schedule.throttles),
        )
        self._ask(int(schedule.next), op)

    def _set(self, option: str, value: str) -> None:
        settings.config_set(self._session, option, value)

    def _set_again(self, option: str) -> None:
        """Set an option, if the original has it; a refusal has been named at the beginning."""
        if (value := self._found.config.get(option)) is not None:
            with suppress(QlessError):
                self._set(option, value)

    def _list_queues(self) -> None:
        """List the queues in their order: a put lists a queue."""
        for queue, seen in self._found.queues:
            self._try(queue, "queue", self._list, queue, seen)

    def _list(self, queue: str, seen: float) -> None:
        self._ask(seen, ops.Put(queue, "listed", NOBODY, "{}"))
        self._ask(seen, ops.Cancel(("listed",)))

    def _name_the_lost(self) -> None:
        """Name the jobs that the original has lost: it shows them by their ids, but no list has them."""
        for job in self._found.jobs.values():
            if job.jid not in self._met:
                self._report.refused.append(
                    (job.jid, f"the original has lost it: its state is {job.state}, in no list")
                )

    def _set_what_would_hinder(self) -> None:
        """Set what would hinder pops: leases as they are configured, pauses and limits; and what needs its job."""
        found, now = self._found, self._now / 1000
        for queue in self._leases:
            self._ask(now, ops.ConfigUnset(f"heartbeat-{queue}"))
            self._set_again(f"{queue}-heartbeat")
        for option in RETENTION:
            self._ask(now, ops.ConfigUnset(option))
            self._set_again(option)
        for when, jid, tag in found.tagged:
            self._try(jid, "tag", self._ask, when, ops.TagAdd(jid, (tag,)))
        for queue in sorted(self._used - {name for name, _ in found.queues}):  # `queue.forget` took it off the list
            with suppress(QlessError):  # a name that is refused has no queue
                self._session.forget(queue, gone=True)
        for jid, seen in found.tracked:
            if jid in found.jobs:
                self._try(jid, "tracked", self._ask, seen, ops.Track(jid))
        for queue in found.paused:
            self._try(queue, "paused", self._ask, now, ops.Pause((queue,)))
        if found.identifiers:
            words = [word for pair in found.identifiers.items() for word in pair]
            self._try("identifiers", "patterns", throttles.identifiers_set, self._session, *words)
        if found.priorities:
            self._try("priorities", "patterns", throttles.priorities_set, self._session, *found.priorities)


def _first(job: OldJob) -> Operation:
    """Put a job before the others of its priority."""
    return ops.Priority(job.jid, -int(job.priority), first=True)


def _milliseconds(seconds: float) -> int:
    """Convert a moment or a duration; negative ones are 0."""
    return round(min(max(seconds * 1000, 0), TIME_END - 1))


def _last(job: OldJob) -> float:
    """When a job was put, popped or completed last; to the second for one of 2012, which keeps no exact moment."""
    return job.time or max(
        (stage.when for stage in job.history if stage.what in ("put", "popped", "done")), default=0.0
    )


def _put_at(job: OldJob) -> float:
    """When a job was put last, or entered its queue; exact if nothing happened since, else to the second."""
    if job.entered:
        return job.entered
    last = next((stage for stage in reversed(job.history) if stage.what == "put"), None)
    return _last(job) if last is None or last is job.history[-1] else last.when


def _popped_at(job: OldJob) -> float:
    """When a job was popped last, to the second."""
    return max((stage.when for stage in job.history if stage.what == "popped"), default=_last(job))


def _worker(job: OldJob) -> str:
    """Who had a job last."""
    return next((stage.worker for stage in reversed(job.history) if stage.worker), NOBODY)

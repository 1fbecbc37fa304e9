"""Checks of queues, failures, workers and recurring jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from shlex import quote

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.doctor.findings import OK, WARN, Asked, Finding, first
from qmodel.errors import RefusedError
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted

MOST = 1000
"""The maximum number of queues, groups and workers that are checked."""

LONG_MS = 60_000
"""Milliseconds for which a job may be ready before the check warns: idle workers ask at least every ten seconds."""

SILENT_MS = 3_600_000


def queues(at: Asked) -> Iterator[Finding]:
    """Check that no queue is stuck."""
    listed: list[replies.QueueCounts] = at.client.execute(ops.Queues(0, MOST))
    more = " or more; the first were checked" if len(listed) == MOST else ""
    yield Finding(OK, f"{counted(len(listed), 'queue')}{more}")
    yield from first(_stuck(listed), "queues", "See: qmodel queues")
    yield from first(_left(at, listed), "queues with jobs that no worker takes", "See: qmodel queues")


def _stuck(listed: list[replies.QueueCounts]) -> Iterator[Finding]:
    for one in listed:
        ready = one.waiting + one.stalled
        if one.paused and ready:
            reasons = ", ".join(pause.reason for pause in one.pauses)
            what = f"queue {one.name} is paused with {counted(ready, 'ready job')} ({reasons})"
            yield Finding(WARN, what, f"If this is not intended: qmodel unpause {_word(one.name)}")
        elif one.stalled:
            what = f"queue {one.name} has {counted(one.stalled, 'job')} whose workers were lost"
            fix = f"Start a worker: the next pop takes them. See: qmodel op stalled {_word(one.name)}"
            yield Finding(WARN, what, fix)


def _left(at: Asked, listed: list[replies.QueueCounts]) -> Iterator[Finding]:
    """Find queues whose next job has been ready for long, and say why no worker has taken it."""
    waiting = [one.name for one in listed if one.waiting and not one.paused]
    peeked = at.client.execute_many(ops.Peek(name) for name in waiting)
    now = _now()
    for name, jobs in zip(waiting, peeked, strict=True):
        since = now - jobs[0].ready_at if isinstance(jobs, tuple) and jobs else 0
        if since <= LONG_MS:
            continue
        [reasons] = at.client.execute_many([ops.Why(jobs[0].jid)])
        if isinstance(reasons, RefusedError):  # the job was deleted, or is a due run that is not made yet
            reasons = ()
        what = f"the next job of queue {name} has been ready for {format_duration(since)}"
        if any(reason.code == "unattended" for reason in reasons):
            fix = f"No worker asks for jobs. Start one: qmodel worker MODULE:APP --queues {quote(name)}"
        else:
            why = " ".join(reason.sentence for reason in reasons)
            fix = (
                why
                or f"Workers are alive, but busy or on other queues. See: qmodel workers; qmodel stats {_word(name)}"
            )
        yield Finding(WARN, what, fix)


def recurring(at: Asked) -> Iterator[Finding]:
    """Check that the runs of recurring jobs are made, and that the times of cron expressions are set."""
    listed: list[replies.QueueCounts] = at.client.execute(ops.Queues(0, MOST))
    due = [f"{one.name} ({one.due})" for one in listed if one.due]
    if due:
        shown = ", ".join(due[:5]) + (f" and {len(due) - 5} more queues" if len(due) > 5 else "")
        fix = "The next pop of each queue makes them: start a worker of that queue, or run `qmodel op fire QUEUE`."
        yield Finding(WARN, f"runs of recurring jobs are due and not made yet in {shown}", fix)
    unset = at.client.execute(ops.RecurringUnset(0, MOST))
    if unset:
        what = f"{len(unset)} recurring jobs wait for the next times of their cron expressions"
        yield Finding(WARN, what, "Workers set them. Without a worker: qmodel advance-schedules", _advance(at))


def _advance(at: Asked) -> Callable[[], str]:
    return lambda: f"set the next times of {at.client.advance_schedules()} recurring jobs"


def failures(at: Asked) -> Iterator[Finding]:
    """Check that there are no failed jobs."""
    groups = at.client.failed.groups(0, MOST)
    yield from first(
        (
            Finding(WARN, f"{counted(count, 'failed job')} in group {group}", f"See: qmodel failures {_word(group)}")
            for group, count in sorted(groups.items(), key=lambda pair: -pair[1])
        ),
        "groups of failed jobs",
        "See: qmodel failures",
    )
    if groups:
        kept = counted(sum(groups.values()), "failed job")
        yield Finding(OK, f"{kept} kept; to retry: qmodel failures GROUP --retry")


def workers(at: Asked) -> Iterator[Finding]:
    """Check that no worker is silent."""
    now = _now()
    listed = at.client.workers.counts(0, MOST)
    more = " or more; the first were checked" if len(listed) == MOST else ""
    yield Finding(
        OK, f"{counted(len(listed), 'worker')}{more}, holding {counted(sum(one.jobs for one in listed), 'job')}"
    )
    silent = [one for one in listed if now - one.seen_at > SILENT_MS and not one.jobs and not one.stalled]
    yield from first((_silent(at, one, now) for one in silent), "silent workers")


def _silent(at: Asked, one: replies.WorkerCounts, now: int) -> Finding:
    def deregister() -> str:
        at.client.workers.deregister(one.name)
        return f"deregistered {one.name}"

    what = f"worker {one.name} has been silent for {format_duration(now - one.seen_at)}"
    return Finding(WARN, what, f"qmodel op deregister {_word(one.name)}", deregister)


def _word(name: str) -> str:
    """Write a name as an argument for a shell, whatever it begins with."""
    return f"-- {quote(name)}" if name.startswith("-") else quote(name)


def _now() -> int:
    return time.time_ns() // 1_000_000

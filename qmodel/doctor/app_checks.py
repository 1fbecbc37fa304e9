"""Checks whether an app can perform the jobs in the queues, and whether its schedules are declared."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.app import App
from qmodel.app.errors import LoadError
from qmodel.app.load import load
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.doctor.findings import FAIL, OK, WARN, Asked, Check, Finding, first
from qmodel.errors import did_you_mean
from qmodel.present.numbers import counted

QUEUES, JOBS = 100, 10
"""The number of queues, and the number of jobs in each, in which unknown job types are searched."""


def loaded(where: str) -> tuple[App | None, Finding]:
    """Load the app `module:app`; give it, or None, and a finding."""
    try:
        app = load(where)
    except LoadError as error:
        return None, Finding(FAIL, error.sentence, error.next_step)
    except Exception as error:
        what = f"{where} cannot be imported: {type(error).__name__}: {error}"
        return None, Finding(FAIL, what, "Import it in Python to see the traceback.")
    if not app.jobs:
        fix = "Import the modules that declare job types in the module that makes the app."
        return app, Finding(WARN, f"{where} has no job types", fix)
    names = ", ".join(sorted(app.jobs)[:10]) + (", ..." if len(app.jobs) > 10 else "")
    return app, Finding(OK, f"{where} has {counted(len(app.jobs), 'job type')}: {names}")


def check(app: App, where: str) -> Check:
    """Make the check that an app can perform the waiting jobs, and that its schedules are declared."""

    def fits(at: Asked) -> Iterator[Finding]:
        found = [*first(_unknown(at, app, where), "unknown job types"), *_unscheduled(at, app, where)]
        yield from found
        if not found:
            yield Finding(OK, f"{where} knows the next jobs of all queues, and its schedules are declared")

    return fits


def _unscheduled(at: Asked, app: App, where: str) -> Iterator[Finding]:
    for jid in app.schedules:
        if at.client.recurring.get(jid) is None:
            what = f"the schedule {jid} of {where} is not declared on this server"
            yield Finding(WARN, what, "A worker declares it when it starts.")


def _unknown(at: Asked, app: App, where: str) -> Iterator[Finding]:
    listed: list[replies.QueueCounts] = at.client.execute(ops.Queues(0, 1000))
    names = [one.name for one in listed if one.waiting][:QUEUES]
    peeked = at.client.execute_many(ops.Peek(name, JOBS) for name in names)
    for name, jobs in zip(names, peeked, strict=True):
        klasses = dict.fromkeys(job.klass for job in jobs) if isinstance(jobs, tuple) else {}
        for klass in (klass for klass in klasses if klass not in app.jobs):
            meant = did_you_mean(klass, app.jobs)
            hint = f"Did you mean {meant!r}? " if meant else ""
            fix = f"{hint}Unless another app performs them, workers give them back again and again."
            yield Finding(WARN, f"queue {name} has jobs of the type {klass!r}, which {where} does not know", fix)
